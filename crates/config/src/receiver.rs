//! Receivers, which take data from elsewhere.

pub mod file_log;
mod opencensus;
mod otlp;

use kubewake_otlp::Signal;

pub use self::{file_log::FileLogReceiver, opencensus::OpenCensusReceiver, otlp::OtlpReceiver};
use crate::{
    ComponentId,
    component::{ReceiverSettings, ServerContext, component_table},
    decode::foreign_names,
};

component_table! {
    pub enum ReceiverConfig: ReceiverSettings {
        section: "receivers",
        noun: "receiver",
        foreign_names: foreign_names::RECEIVERS,
    }
    Otlp(OtlpReceiver) in Box = ["otlp"], feature "receiver-otlp";
    OpenCensus(OpenCensusReceiver) in Box = ["opencensus"], feature "receiver-opencensus";
    FileLog(FileLogReceiver) in Box = ["file_log", "filelog"], feature "receiver-file-log";
}

impl ReceiverConfig {
    /// The signals of the pipelines that it may feed.
    pub fn signals(&self) -> &'static [Signal] {
        self.settings().signals()
    }

    /// The extension in which it keeps its state.
    pub fn storage_extension_id(&self) -> Option<&ComponentId> {
        self.settings().storage_extension_id()
    }

    /// What its servers know about the sender of a request.
    pub(crate) fn servers(&self) -> Vec<ServerContext> {
        self.settings().servers()
    }
}
