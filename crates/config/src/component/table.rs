//! The macro that makes the enum of a kind of components from its table.

use super::ComponentType;
use crate::{
    decode::{Cursor, DecodeReport},
    encode::YamlMap,
};

/// A kind of components, with its section of the document.
pub(crate) trait ComponentKind: Sized + 'static {
    /// The section that holds them: `receivers`.
    const SECTION: &'static str;
    /// What messages call one of them: `receiver`.
    const NOUN: &'static str;
    /// One row for each component.
    const ROWS: &'static [ComponentRow<Self>];
    /// Names of components that the OpenTelemetry Collector has and this program does not, with spaces in between.
    const FOREIGN_NAMES: &'static str;

    /// The fields of a component's settings.
    fn encode(&self) -> YamlMap;
}

/// What is known about a component before its settings are read.
pub(crate) struct ComponentRow<T> {
    pub(crate) component_type: ComponentType,
    pub(crate) decode: fn(&Cursor<'_>, &DecodeReport) -> Option<T>,
    pub(crate) public_fields: fn() -> &'static [&'static str],
}

/// Makes the enum of a kind of components. A row is
/// `Variant(SettingsType) = ["name", "alias"], feature "cargo-feature";`. Large settings have `in Box` after the
/// parenthesis.
macro_rules! component_table {
    (
        $(#[$attribute:meta])*
        pub enum $kind:ident: $settings:ident {
            section: $section:literal,
            noun: $noun:literal,
            foreign_names: $foreign:expr,
        }
        $($variant:ident($type:ty) $(in $box:ident)? = [$($name:literal),+], feature $feature:literal;)+
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $kind {
            $($variant($crate::component::component_table!(@stored $type $(, $box)?)),)+
        }

        impl $kind {
            /// All components of this kind, in the order of the table.
            pub const TYPES: &'static [$crate::ComponentType] =
                &[$($crate::ComponentType { names: &[$($name),+], feature: $feature },)+];

            /// The names and the cargo feature of the component.
            pub fn component_type(&self) -> $crate::ComponentType {
                match self {
                    $(Self::$variant(_) => $crate::ComponentType { names: &[$($name),+], feature: $feature },)+
                }
            }

            /// The canonical name of the component in documents.
            pub fn type_name(&self) -> &'static str {
                self.component_type().name()
            }

            /// The cargo feature that compiles the component into the collector.
            pub fn feature(&self) -> &'static str {
                self.component_type().feature
            }

            /// The files that the component reads besides the document. A change in one of them is a change of its
            /// settings.
            pub fn files(&self) -> Vec<std::path::PathBuf> {
                self.settings().files()
            }

            /// The extensions that authenticate its connections.
            pub fn auth_extension_ids(&self) -> Vec<&$crate::ComponentId> {
                self.settings().auth_extension_ids()
            }

            fn settings(&self) -> &dyn $settings {
                match self {
                    $(Self::$variant(settings) => {
                        let settings: &$type = settings;
                        settings
                    })+
                }
            }
        }

        impl $crate::component::ComponentKind for $kind {
            const SECTION: &'static str = $section;
            const NOUN: &'static str = $noun;
            const ROWS: &'static [$crate::component::ComponentRow<Self>] = &[$($crate::component::ComponentRow {
                component_type: $crate::ComponentType { names: &[$($name),+], feature: $feature },
                decode: |at, report| {
                    let settings = <$type as $crate::component::ComponentSettings>::decode(at, report)?;
                    Some(Self::$variant(settings.into()))
                },
                public_fields: <$type as $crate::component::ComponentSettings>::public_fields,
            },)+];
            const FOREIGN_NAMES: &'static str = $foreign;

            fn encode(&self) -> $crate::encode::YamlMap {
                self.settings().encode()
            }
        }
    };
    (@stored $type:ty) => { $type };
    (@stored $type:ty, Box) => { Box<$type> };
}

pub(crate) use component_table;
