//! The form of what is written: every request of a batch by itself, since readers of lines have limits, and a batch may be
//! large.

use kubewake_config::model::FileFormat;
use kubewake_otlp::{Signal, json::EncodeError};

use crate::core::{SendError, WorkMemory};

/// zstd's own default.
const LEVEL: i32 = 3;

/// How requests are written.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) format: FileFormat,
    pub(super) zstd: bool,
}

impl Form {
    /// Whether a request is a line; else it is a length and so many bytes, as what is compressed may hold any.
    pub(super) fn is_lines(self) -> bool {
        self.format == FileFormat::Json && !self.zstd
    }

    /// Adds a request to `out`. JSON may be many times as long as what it is of, so that its memory is asked for.
    pub(super) fn encode(
        self,
        signal: Signal,
        request: &[u8],
        out: &mut Vec<u8>,
        memory: &mut WorkMemory<'_>,
    ) -> Result<(), SendError> {
        if self.is_lines() {
            json(signal, request, out, memory)?;
            out.push(b'\n');
            return Ok(());
        }
        let mut text = Vec::new();
        let mut content = request;
        if self.format == FileFormat::Json {
            json(signal, request, &mut text, memory)?;
            content = &text;
        }
        match self.zstd {
            true => {
                let compressed = zstd::bulk::compress(content, LEVEL);
                prefixed(&compressed.map_err(|error| SendError::local(error.to_string()))?, out)
            }
            false => prefixed(content, out),
        }
    }
}

fn json(signal: Signal, request: &[u8], out: &mut Vec<u8>, memory: &mut WorkMemory<'_>) -> Result<(), SendError> {
    kubewake_otlp::json::encode_within(signal, request, out, memory).map_err(|error| match error {
        EncodeError::NoMemory => memory.send_error(),
        error => SendError::malformed(format!("cannot be written as JSON: {error}")),
    })
}

fn prefixed(content: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
    let length = u32::try_from(content.len())
        .map_err(|_| SendError::malformed("a request of 4 GiB or more has no length in this format"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(content);
    Ok(())
}
