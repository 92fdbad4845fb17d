//! Access of the fuzz targets to private modules. No logic of its own.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use http::{StatusCode, Uri};
use jiff::Timestamp;

use crate::kubelet::{
    logs::line::{LineSplitter, LogEntry, OutputStream},
    probe,
};

/// The log entries of a container's output, written in pieces of these sizes.
pub fn log_entries(output: &[u8], piece: usize) -> Vec<u8> {
    let mut splitter = LineSplitter::new(OutputStream::Stdout);
    let mut out = Vec::new();
    output.chunks(piece.max(1)).for_each(|bytes| splitter.push(bytes, Timestamp::UNIX_EPOCH, &mut out));
    splitter.finish(Timestamp::UNIX_EPOCH, &mut out);
    out
}

/// The text of an entry, and whether the line ends with it.
pub fn log_entry(line: &[u8]) -> Option<(&[u8], bool)> {
    LogEntry::parse(line).map(|entry| (entry.text, entry.full))
}

/// Status and redirect target of the response to an HTTP probe that consists of these bytes.
pub async fn http_answer(answer: &[u8]) -> Result<(StatusCode, Option<String>), String> {
    probe::http::read_answer(answer).await
}

/// The target of a redirect from a URL.
pub fn redirected(from: &Uri, location: &str) -> Option<Uri> {
    probe::http::resolve_redirect(from, location)
}

/// The health state in the body of a gRPC health response.
pub fn health_state(framed: &[u8]) -> usize {
    probe::grpc::parse_health_state(framed)
}
