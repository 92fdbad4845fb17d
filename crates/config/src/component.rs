//! What every component of a document states about itself, and the tables of components.
//!
//! `receiver.rs`, `processor.rs`, `exporter.rs`, `extension.rs` and `connector.rs` each hold one table with one row per
//! component: its variant, its settings type, its names in documents and its cargo feature. The macro
//! `component_table` makes the closed enum of the kind from the table. Everything else that has to be known about a
//! component follows from the row, or from the traits here, which the settings type of the component implements. No
//! other module lists components.
//!
//! A component without a row does not compile as a variant, and a row without one of the traits does not compile.

mod table;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use kubewake_otlp::Signal;

pub(crate) use table::{ComponentKind, ComponentRow, component_table};

use crate::{
    ComponentId,
    decode::{ConnectionSide, Cursor, DecodeReport},
    encode::YamlMap,
    problem::ProblemSeverity,
    processor::ProcessorConfig,
};

/// The names of a component in documents, and the cargo feature that compiles it into the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentType {
    /// The names in documents: the canonical one first, then its aliases. Never empty.
    pub names: &'static [&'static str],
    /// The cargo feature of `kubewake-collector`.
    pub feature: &'static str,
}

impl ComponentType {
    /// The canonical name.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// The other names that documents may use.
    pub fn aliases(&self) -> &'static [&'static str] {
        self.names.get(1..).unwrap_or_default()
    }
}

/// The settings of one component, of any kind.
pub(crate) trait ComponentSettings {
    /// Reads the settings. Every field is read or reported; `None` if they are of no use.
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self>
    where
        Self: Sized;

    /// The fields from which [`decode`](Self::decode) reads these settings. Fields at their defaults are left out.
    fn encode(&self) -> YamlMap;

    /// Names of fields that messages may show even of a text that is not YAML. Names that other components have as
    /// well are in `problem/mask.rs`.
    fn public_fields() -> &'static [&'static str]
    where
        Self: Sized,
    {
        &[]
    }

    /// The files that a receiver, an exporter or an extension reads besides the document. A change in one of them
    /// is a change of its settings.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The extensions that authenticate the connections of a receiver or an exporter; at most one of an exporter.
    /// The decoder registers the position of each reference when it reads the field with `network::auth`.
    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        Vec::new()
    }
}

/// The settings of a receiver.
pub(crate) trait ReceiverSettings: ComponentSettings {
    /// The signals of the pipelines that it may feed.
    fn signals(&self) -> &'static [Signal];

    /// What its servers know about the sender of a request. Receivers that are no servers have none.
    fn servers(&self) -> Vec<ServerContext> {
        Vec::new()
    }

    /// The extension in which it keeps its state.
    fn storage_extension_id(&self) -> Option<&ComponentId> {
        None
    }
}

/// The settings of a processor.
pub(crate) trait ProcessorSettings: ComponentSettings {
    /// The signals of the pipelines that it may be part of.
    fn signals(&self) -> &'static [Signal];

    /// Checks its place in a pipeline. That the signal is supported was checked before.
    fn check_place(&self, _: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        Vec::new()
    }

    /// Whether records that leave it still belong to the request that they came with.
    fn keeps_requests(&self) -> bool {
        true
    }
}

/// The settings of an exporter.
pub(crate) trait ExporterSettings: ComponentSettings {
    /// The signals of the pipelines that it may be part of.
    fn signals(&self) -> &'static [Signal];

    /// Checks its place in a pipeline. That the signal is supported was checked before.
    fn check_place(&self, _: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        Vec::new()
    }
}

/// The settings of a connector.
pub(crate) trait ConnectorSettings: ComponentSettings {
    /// The signals of the pipelines that it may feed with what it receives from a pipeline of this signal; none if it
    /// does not support the signal.
    fn outputs(&self, input: Signal) -> &'static [Signal];
}

/// The settings of an extension.
pub(crate) trait ExtensionSettings: ComponentSettings {
    /// Whether it authenticates this side of connections.
    fn authenticates(&self, _: ConnectionSide) -> bool {
        false
    }

    /// Whether components may keep their state in it.
    fn keeps_state(&self) -> bool {
        false
    }
}

/// What a server of a receiver knows about the sender of a request.
pub(crate) struct ServerContext {
    /// An authenticator identifies the sender.
    pub(crate) sender_identity: bool,
    /// The headers of the request are kept.
    pub(crate) metadata: bool,
}

/// The place of a component in a pipeline.
pub(crate) struct PipelinePlace<'a> {
    pub(crate) signal: Signal,
    pub(crate) id: &'a ComponentId,
    /// One processor of each type that data passes before, without those whose settings could not be read.
    pub(crate) processors_before: &'a [&'a ProcessorConfig],
}

/// A problem that a component has with its place in a pipeline.
pub(crate) struct PlaceProblem {
    pub(crate) severity: ProblemSeverity,
    pub(crate) message: String,
    pub(crate) help: String,
}

impl PlaceProblem {
    pub(crate) fn error(message: String, help: impl Into<String>) -> Self {
        Self { severity: ProblemSeverity::Error, message, help: help.into() }
    }

    pub(crate) fn warning(message: String, help: impl Into<String>) -> Self {
        Self { severity: ProblemSeverity::Warning, message, help: help.into() }
    }
}
