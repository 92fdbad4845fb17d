//! Renders the receiver of logs of containers.

use kubewake_config::{
    ComponentId,
    model::{FileAttributes, FileCompression, FileLogReceiver, ReceiverConfig, StartPosition},
};

use super::agent::STATE_EXTENSION;
use crate::{CollectorSettings, pipeline::LineSettings};

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
        storage: Some(ComponentId::new(STATE_EXTENSION)),
        ..FileLogReceiver::default()
    };
    ReceiverConfig::FileLog(receiver.into())
}
