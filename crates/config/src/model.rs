//! The document as types, with the Collector's field names and defaults.
//!
//! Every type here is plain data. A [`CollectorDocument`] from [`load`](crate::load()) has passed all checks; one
//! that a program makes writes itself ([`CollectorDocument::to_yaml`]).

use std::collections::BTreeMap;

use crate::ComponentId;
pub use crate::{
    connector::*, exporter::*, extension::*, matching::*, name_template::*, network::*, processor::*, receiver::*,
    sending::*, service::*, service_account::*,
};

#[derive(Clone, Debug, PartialEq, Default)]
pub struct CollectorDocument {
    pub receivers: BTreeMap<ComponentId, ReceiverConfig>,
    /// Processors, which change, group or limit data.
    pub processors: BTreeMap<ComponentId, ProcessorConfig>,
    pub exporters: BTreeMap<ComponentId, ExporterConfig>,
    /// Connectors, each listed as exporter of some pipelines and as receiver of others.
    pub connectors: BTreeMap<ComponentId, ConnectorConfig>,
    /// Services of the collector itself, such as health and credentials.
    pub extensions: BTreeMap<ComponentId, ExtensionConfig>,
    /// Which of these are enabled, and how they are connected.
    pub service: ServiceConfig,
}
