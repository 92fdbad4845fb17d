//! What a request's body is, by its `Content-Type`.

use http::StatusCode;

use super::Media;
use crate::api::{Status, status::Details};

/// How a patch is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum PatchType {
    Json,
    Merge,
    StrategicMerge,
    Apply,
}

impl PatchType {
    /// As in headers.
    pub fn name(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::StrategicMerge => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

/// The body of a create, an update or a delete. Without a header it is JSON.
///
/// # Errors
/// A 415 with kube-apiserver's words.
pub fn object(content_type: Option<&str>) -> Result<Media, Status> {
    let all = [Media::Json, Media::Yaml, Media::Protobuf];
    let Some(header) = content_type.filter(|header| !header.is_empty()) else { return Ok(Media::Json) };
    let essence = essence(header);
    let known = all.into_iter().find(|media| essence.eq_ignore_ascii_case(media.name()));
    known.ok_or_else(|| unsupported(&all.map(Media::name)))
}

/// The body of a patch. Custom resources have no strategic merge, and are refused in other words.
///
/// # Errors
/// A 415 with kube-apiserver's words.
pub fn patch(content_type: Option<&str>, custom: bool) -> Result<PatchType, Status> {
    let types: &[PatchType] = if custom {
        &[PatchType::Json, PatchType::Merge, PatchType::Apply]
    } else {
        &[PatchType::Json, PatchType::Merge, PatchType::StrategicMerge, PatchType::Apply]
    };
    let essence = essence(content_type.unwrap_or_default());
    let known = types.iter().copied().find(|patch| patch.name() == essence);
    known.ok_or_else(|| {
        if custom {
            let names: Vec<&str> = types.iter().map(|patch| patch.name()).collect();
            return unsupported(&names);
        }
        // Built-in kinds are refused by the router, before any handler.
        let (code, reason) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType");
        Status::new(code, reason, "415: Unsupported Media Type").with(Details::default())
    })
}

/// A media type without its parameters.
fn essence(header: &str) -> &str {
    header.split(';').next().unwrap_or_default().trim()
}

fn unsupported(known: &[&str]) -> Status {
    let known = known.join(", ");
    let message = format!("the body of the request was in an unknown format - accepted media types include: {known}");
    Status::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
}
