//! The macro behind the tables of components.

/// The cargo feature of a row.
pub(crate) struct ComponentFeature {
    pub(crate) name: &'static str,
    pub(crate) is_compiled: bool,
}

/// Declares the components of one kind: for each a cargo feature, the variant of the configuration enum, and the
/// module that implements it.
///
/// It defines `prepare`, which calls `prepare` of the module that the settings belong to, and `FEATURES`. The match
/// in `prepare` has no wildcard: a variant without a row does not compile. Without its feature a component is
/// refused with the name of the feature.
macro_rules! component_table {
    (
        fn prepare($config:ident, $context:ty) -> $prepared:ty;
        $( $feature:literal, $variant:ident => $module:ident; )+
    ) => {
        /// Checks the settings of a component of this build, and builds everything of it that may fail.
        ///
        /// # Errors
        ///
        /// If the build lacks the component, or the component cannot be built from these settings.
        pub fn prepare(settings: &$config, context: &$context) -> Result<$prepared, $crate::components::BuildError> {
            match settings {
                $(
                    #[cfg(feature = $feature)]
                    $config::$variant(settings) => $module::prepare(settings, context),
                    #[cfg(not(feature = $feature))]
                    $config::$variant { .. } => {
                        Err($crate::components::BuildError::missing_feature(context.id, $feature))
                    }
                )+
            }
        }

        /// The features of this kind of components, in the order of the rows.
        pub(crate) const FEATURES: &[$crate::components::ComponentFeature] = &[
            $( $crate::components::ComponentFeature { name: $feature, is_compiled: cfg!(feature = $feature) }, )+
        ];
    };
}

pub(crate) use component_table;
