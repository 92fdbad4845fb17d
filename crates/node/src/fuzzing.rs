//! What the fuzz targets reach of private modules. Nothing is decided here.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use http::{StatusCode, Uri};
use jiff::Timestamp;

use crate::kubelet::{
    logs::line::{Entry, Splitter, Stream},
    probe,
};

/// The entries of a log for what a container wrote, in pieces of these sizes.
pub fn log_entries(output: &[u8], piece: usize) -> Vec<u8> {
    let (mut splitter, mut out) = (Splitter::new(Stream::Stdout), Vec::new());
    output.chunks(piece.max(1)).for_each(|bytes| splitter.push(bytes, Timestamp::UNIX_EPOCH, &mut out));
    splitter.finish(Timestamp::UNIX_EPOCH, &mut out);
    out
}

/// The text of an entry, and whether its line ends there.
pub fn log_entry(line: &[u8]) -> Option<(&[u8], bool)> {
    Entry::parse(line).map(|entry| (entry.text, entry.full))
}

/// The status of an answer to an HTTP probe that consists of these bytes, and where it leads.
pub async fn http_answer(answer: &[u8]) -> Result<(StatusCode, Option<String>), String> {
    probe::http::read_answer(answer).await
}

/// Where a redirect leads from a URL.
pub fn redirected(from: &Uri, location: &str) -> Option<Uri> {
    probe::http::redirected(from, location)
}

/// What the body of a health answer says.
pub fn health_state(framed: &[u8]) -> usize {
    probe::grpc::state(framed)
}
