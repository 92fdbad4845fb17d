//! Receipts on their way from the exporters to the thread that reads.

use kubewake_log_files::LogFilesHandle;
use kubewake_runtime::lock::Mutex;

use super::output_table::OutputKey;
use crate::core::{DeliveryOutcome, ReceiptListener, ReceiptOutput};

/// One output's receipt for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedToken {
    pub(super) request: u64,
    pub(super) output: OutputKey,
    pub(super) outcome: DeliveryOutcome,
}

/// Takes receipts from any thread, and wakes the thread that reads.
#[derive(Default)]
pub(super) struct ReceiptInbox {
    ended: Mutex<Vec<EndedToken>>,
    reading: Mutex<Option<LogFilesHandle>>,
}

impl ReceiptInbox {
    /// Wakes the owner of these log files from now on.
    pub(super) fn set_reading(&self, files: Option<LogFilesHandle>) {
        *self.reading.lock() = files;
    }

    /// Wakes the thread that reads, whatever it waits for.
    pub(super) fn wake(&self) {
        if let Some(files) = &*self.reading.lock() {
            files.wake();
        }
    }

    pub(super) fn take(&self) -> Vec<EndedToken> {
        std::mem::take(&mut *self.ended.lock())
    }
}

impl ReceiptListener for ReceiptInbox {
    fn end_token(&self, request: u64, output: &ReceiptOutput, outcome: DeliveryOutcome) {
        let is_first = {
            let mut ended = self.ended.lock();
            ended.push(EndedToken { request, output: OutputKey(output.number), outcome });
            ended.len() == 1
        };
        if is_first {
            self.wake();
        }
    }
}
