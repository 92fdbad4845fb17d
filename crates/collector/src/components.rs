//! The interface between the engine and the components, and the one list of what this build contains.
//!
//! A component is a module below `receiver`, `processor`, `exporter` or `extension`, and a row in the table of its
//! kind (`receiver.rs` and so on). The row says which cargo feature brings the component and which
//! variant of the closed configuration enum it builds. The table expands to a match over that enum without a
//! wildcard ([`component_table`]), so that a component without a row does not compile, and one whose feature is off
//! is refused with the name of the feature.
//!
//! Components are built in two steps. `prepare` does everything that may fail and changes nothing that runs; it
//! runs on a thread where it may block. The result then starts, or hands new settings to the running component, which
//! cannot fail. The types of components are erased here and nowhere else: dynamic calls are made when a document is
//! applied or drained, never for a request.

mod connector_node;
mod exporter_node;
mod processor_node;
mod receiver_node;
mod state_directory;
mod table;

use std::sync::Arc;

use kubewake_config::{
    ComponentId, ComponentType,
    model::{ConnectorConfig, ExporterConfig, ExtensionConfig, ProcessorConfig, ReceiverConfig},
};

pub(crate) use self::table::{ComponentFeature, component_table};
pub use self::{
    connector_node::{Connector, ConnectorContext, ConnectorInput, ConnectorSite, PrepareConnector, PreparedConnector},
    exporter_node::{ExporterContext, ExporterNode, ExporterParts, ExporterSite, PrepareExporter, PreparedExporter},
    processor_node::{
        PrepareProcessor, PreparedNode, PreparedProcessor, PreparedTransform, ProcessorContext, ProcessorSite,
    },
    receiver_node::{PrepareReceiver, PreparedReceiver, Receiver, ReceiverContext, ReceiverSite, ServerAuthLookup},
};
use crate::{
    connector, exporter,
    extension::{self, ClientAuth, PreparedExtension, ServerAuth},
    processor, receiver,
};

/// Why a component could not be built. The message holds no secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(pub String);

impl BuildError {
    /// The error for a component that is not compiled in.
    pub fn missing_feature(id: &ComponentId, feature: &str) -> Self {
        let name = id.kind();
        Self(format!("`{name}` is not part of this build; it comes with the cargo feature `{feature}`"))
    }
}

/// The authenticators of an extension, for clients and for servers.
#[derive(Clone, Default)]
pub struct AuthProviders {
    pub client: Option<Arc<dyn ClientAuth>>,
    pub server: Option<Arc<dyn ServerAuth>>,
}

/// What an extension knows of its place in the document.
pub struct ExtensionContext<'a> {
    pub id: &'a ComponentId,
}

/// The tables from which an engine builds components. A test may replace one of them.
#[derive(Clone, Copy)]
pub(crate) struct ComponentTables {
    pub(crate) receiver: fn(&ReceiverConfig, &ReceiverContext<'_>) -> Result<PreparedReceiver, BuildError>,
    pub(crate) processor: fn(&ProcessorConfig, &ProcessorContext<'_>) -> Result<PreparedProcessor, BuildError>,
    pub(crate) exporter: fn(&ExporterConfig, &ExporterContext<'_>) -> Result<PreparedExporter, BuildError>,
    pub(crate) connector: fn(&ConnectorConfig, &ConnectorContext<'_>) -> Result<PreparedConnector, BuildError>,
    pub(crate) extension: fn(&ExtensionConfig, &ExtensionContext<'_>) -> Result<PreparedExtension, BuildError>,
}

impl ComponentTables {
    /// The components of this build.
    pub(crate) const COMPILED: Self = Self {
        receiver: receiver::prepare,
        processor: processor::prepare,
        exporter: exporter::prepare,
        connector: connector::prepare,
        extension: extension::prepare,
    };
}

/// The components of this build, one line for each kind.
pub fn list_components() -> String {
    let line = |kind: &str, types: &[ComponentType], features: &[ComponentFeature]| {
        let is_compiled = |kind: &&ComponentType| features.iter().any(|f| f.name == kind.feature && f.is_compiled);
        let names: Vec<String> = types.iter().filter(is_compiled).map(display_names).collect();
        format!("{kind}: {}\n", names.join(", "))
    };
    [
        line("receivers", ReceiverConfig::TYPES, receiver::FEATURES),
        line("processors", ProcessorConfig::TYPES, processor::FEATURES),
        line("exporters", ExporterConfig::TYPES, exporter::FEATURES),
        line("connectors", ConnectorConfig::TYPES, connector::FEATURES),
        line("extensions", ExtensionConfig::TYPES, extension::FEATURES),
    ]
    .concat()
}

/// The name of a component, with its other names in parentheses.
fn display_names(kind: &ComponentType) -> String {
    match kind.aliases() {
        [] => kind.name().to_owned(),
        aliases => format!("{} ({})", kind.name(), aliases.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_features_that_the_configuration_names() {
        let tables = [
            (ReceiverConfig::TYPES, receiver::FEATURES),
            (ProcessorConfig::TYPES, processor::FEATURES),
            (ExporterConfig::TYPES, exporter::FEATURES),
            (ConnectorConfig::TYPES, connector::FEATURES),
            (ExtensionConfig::TYPES, extension::FEATURES),
        ];
        for (types, features) in tables {
            let named: Vec<_> = types.iter().map(|kind| kind.feature).collect();
            assert_eq!(named, features.iter().map(|feature| feature.name).collect::<Vec<_>>());
        }
    }

    #[test]
    fn component_without_its_feature_is_refused_with_the_name_of_the_feature() {
        let error = BuildError::missing_feature(&ComponentId::new("gone/one"), "some-feature");
        assert_eq!(
            error.to_string(),
            "`gone` is not part of this build; it comes with the cargo feature `some-feature`"
        );
    }
}
