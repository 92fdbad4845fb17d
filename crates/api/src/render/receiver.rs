//! Renders the receiver of logs of containers.

use std::path::PathBuf;

use kubewake_config::{
    ComponentId,
    model::{
        FileLogReceiver, ReceiverConfig,
        file_log::{BodyParsing, FileAttributes, OperatorGraph, StartPosition},
    },
};

use super::agent::STATE_EXTENSION;
use crate::{CollectorSettings, pipeline::LineSettings, v1alpha1::MultilineMode};

/// The receiver of the files that match these patterns.
pub(super) fn file_log(
    include: &[String],
    exclude: &[String],
    lines: LineSettings,
    settings: &CollectorSettings,
) -> ReceiverConfig {
    let receiver = FileLogReceiver {
        include: include.to_vec(),
        exclude: exclude.to_vec(),
        // What was written before the pipeline was created is delivered, too.
        start_at: StartPosition::Beginning,
        // The resource says which container it is.
        file_attributes: FileAttributes { name: false, ..FileAttributes::default() },
        storage: Some(ComponentId::new(STATE_EXTENSION)),
        operators: OperatorGraph::for_containers(),
        body_parsing: BodyParsing {
            json: lines.json,
            message: lines.message,
            severity: lines.severity,
            trace_context: lines.trace_context,
            keep_original: lines.keep_original,
        },
        joins_stack_traces: lines.multiline == MultilineMode::Auto,
        // A link that a container could make must not lead to other files of the node.
        link_directories: Some(settings.linked_log_directories.iter().map(PathBuf::from).collect()),
        ..FileLogReceiver::default()
    };
    ReceiverConfig::FileLog(receiver.into())
}
