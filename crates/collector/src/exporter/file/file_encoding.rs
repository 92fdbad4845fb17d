//! Encodes the requests of a batch. Each is encoded by itself, since readers of lines have limits, and a batch
//! may be large.

use kubewake_config::model::FileFormat;
use kubewake_otlp::{Signal, json::EncodeError};

use crate::core::{SendError, WorkMemory};

const ZSTD_LEVEL: i32 = 3;

#[derive(Clone, Copy)]
pub(super) struct FileEncoding {
    pub(super) format: FileFormat,
    pub(super) zstd: bool,
}

impl FileEncoding {
    /// Whether a request is a line. Else it has a length prefix, as compressed data may contain any byte.
    pub(super) fn is_lines(self) -> bool {
        self.format == FileFormat::Json && !self.zstd
    }

    /// Appends a request to `out`. JSON may be many times as long as its request, so that its memory is
    /// reserved.
    pub(super) fn encode(
        self,
        signal: Signal,
        request: &[u8],
        out: &mut Vec<u8>,
        memory: &mut WorkMemory<'_>,
    ) -> Result<(), SendError> {
        if self.is_lines() {
            encode_json(signal, request, out, memory)?;
            out.push(b'\n');
            return Ok(());
        }
        let mut text = Vec::new();
        let mut content = request;
        if self.format == FileFormat::Json {
            encode_json(signal, request, &mut text, memory)?;
            content = &text;
        }
        if self.zstd {
            let compressed = zstd::bulk::compress(content, ZSTD_LEVEL);
            write_length_prefixed(&compressed.map_err(|error| SendError::local(error.to_string()))?, out)
        } else {
            write_length_prefixed(content, out)
        }
    }
}

fn encode_json(
    signal: Signal,
    request: &[u8],
    out: &mut Vec<u8>,
    memory: &mut WorkMemory<'_>,
) -> Result<(), SendError> {
    kubewake_otlp::json::encode_within(signal, request, out, memory).map_err(|error| match error {
        EncodeError::NoMemory => memory.send_error(),
        error => SendError::malformed(format!("failed to encode the request as JSON: {error}")),
    })
}

fn write_length_prefixed(content: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
    let length = u32::try_from(content.len())
        .map_err(|_| SendError::malformed("a request of 4 GiB or more does not fit the length prefix of the format"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(content);
    Ok(())
}
