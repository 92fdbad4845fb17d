//! The files of the page, embedded in the binary. Debug builds read them from disk, so that a reload shows a
//! change.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "page/"]
struct PageFiles;

/// Client-side routes: all of them return the same document.
const PAGE_ROUTES: [&str; 4] = ["search", "trace", "objects", "pipelines"];

/// A file of the page, or the document itself for client-side routes.
pub(crate) fn serve_file(path: &str) -> Response {
    let path = path.trim_start_matches('/');
    let view = path.split('/').next().unwrap_or_default();
    let name = if path.is_empty() || PAGE_ROUTES.contains(&view) { "index.html" } else { path };
    let Some(file) = PageFiles::get(name) else { return StatusCode::NOT_FOUND.into_response() };
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
