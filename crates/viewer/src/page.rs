//! The page, in the binary. Debug builds read it from the folder, so that a change shows by a reload.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "page/"]
struct Files;

/// Paths of the page itself: all of them are the same document, which looks at its address.
const VIEWS: [&str; 4] = ["search", "trace", "objects", "pipelines"];

/// A file of the page, or the page itself for the paths that are states of it.
pub(crate) fn file(path: &str) -> Response {
    let path = path.trim_start_matches('/');
    let view = path.split('/').next().unwrap_or_default();
    let name = if path.is_empty() || VIEWS.contains(&view) { "index.html" } else { path };
    let Some(file) = Files::get(name) else { return StatusCode::NOT_FOUND.into_response() };
    let headers = [(header::CONTENT_TYPE, media_type(name)), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from(file.data)).into_response()
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
