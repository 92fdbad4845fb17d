//! A macro for closed sets of labels.

/// Defines an enum with one fixed name for each variant: the variants, their names and the list of all are
/// written in one place.
///
/// It is for labels of metrics and words of documents, which come from closed sets so that their number is
/// bounded. The variants are numbered from zero in the order of `ALL`, so that `variant as usize` is an index
/// into an array of `ALL.len()` counters.
///
/// *Not done*: names that are derived from the variants. The reasons of `kubewake-api` are such names; their
/// crate is pure and does not depend on this one.
///
/// ```
/// kubewake_runtime::label_enum! {
///     /// Why a request was refused.
///     pub enum RefusalReason {
///         /// There was no memory for it.
///         Memory => "memory",
///         TooLarge => "too_large",
///     }
/// }
///
/// assert_eq!(RefusalReason::ALL, [RefusalReason::Memory, RefusalReason::TooLarge]);
/// assert_eq!(RefusalReason::TooLarge.name(), "too_large");
/// ```
#[macro_export]
macro_rules! label_enum {
    ($(#[$outer:meta])* $vis:vis enum $enum:ident { $($(#[$doc:meta])* $variant:ident => $name:literal),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $enum { $($(#[$doc])* $variant),+ }

        impl $enum {
            /// All variants, in the order of their definition.
            $vis const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in labels and documents.
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}
