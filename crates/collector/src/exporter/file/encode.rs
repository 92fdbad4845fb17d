//! The form of what is written: every request of a batch by itself, since readers of lines have limits, and a batch may be
//! large.

use kubewake_config::model::FileFormat;
use kubewake_otlp::Signal;

use crate::core::SendError;

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

    /// Adds a request to `out`.
    pub(super) fn encode(self, signal: Signal, request: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
        if self.is_lines() {
            json(signal, request, out)?;
            out.push(b'\n');
            return Ok(());
        }
        let mut text = Vec::new();
        let mut content = request;
        if self.format == FileFormat::Json {
            json(signal, request, &mut text)?;
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

fn json(signal: Signal, request: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
    let written = kubewake_otlp::json::encode(signal, request, out);
    written.map_err(|error| SendError::malformed(format!("cannot be written as JSON: {error}")))
}

fn prefixed(content: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
    let length = u32::try_from(content.len())
        .map_err(|_| SendError::malformed("a request of 4 GiB or more has no length in this format"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(content);
    Ok(())
}
