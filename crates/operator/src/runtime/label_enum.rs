//! A macro for enums that are labels of metrics: variants, their texts and the list of all, from one place.

macro_rules! closed {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value of the label.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

pub(super) use closed;
