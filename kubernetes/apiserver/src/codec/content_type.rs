//! The format of a request's body, by its `Content-Type`.

use http::StatusCode;

use super::MediaType;
use crate::api::{StatusError, status::StatusDetails};

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchType {
    Json,
    Merge,
    StrategicMerge,
    Apply,
}

impl PatchType {
    pub fn name(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::StrategicMerge => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

/// The format of the body of a create, an update or a delete. The default is JSON.
///
/// # Errors
/// A 415 with kube-apiserver's message.
pub fn object(content_type: Option<&str>) -> Result<MediaType, StatusError> {
    let all = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf];
    let Some(header) = content_type.filter(|header| !header.is_empty()) else { return Ok(MediaType::Json) };
    let essence = parse(header);
    let known = all.into_iter().find(|media| essence.is_some_and(|name| name.eq_ignore_ascii_case(media.name())));
    known.ok_or_else(|| unsupported(&all.map(MediaType::name)))
}

/// The type of a patch. Custom resources have no strategic merge, and other messages.
///
/// # Errors
/// A 415 with kube-apiserver's message.
pub fn patch(content_type: Option<&str>, custom: bool) -> Result<PatchType, StatusError> {
    let types: &[PatchType] = if custom {
        &[PatchType::Json, PatchType::Merge, PatchType::Apply]
    } else {
        &[PatchType::Json, PatchType::Merge, PatchType::StrategicMerge, PatchType::Apply]
    };
    let header = content_type.unwrap_or_default();
    let named = |name: &str| types.iter().copied().find(|patch| patch.name() == name);
    let parts = || header.split(',').map(|part| part.split(';').next().unwrap_or_default().trim_matches(' '));
    if !custom && !parts().any(|part| named(part).is_some()) {
        // For built-in kinds the router refuses it, before any handler.
        let (code, reason) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType");
        return Err(StatusError::new(code, reason, "415: Unsupported Media Type").with(StatusDetails::default()));
    }
    // Unlike the types of objects, those of patches are compared literally.
    named(header.split(';').next().unwrap_or_default()).ok_or_else(|| {
        let names: Vec<&str> = types.iter().map(|patch| patch.name()).collect();
        unsupported(&names)
    })
}

/// A media type without its parameters; none if either is malformed. Its case is ignored.
fn parse(header: &str) -> Option<&str> {
    let (essence, mut rest) = match header.find(';') {
        Some(at) => header.split_at(at),
        None => (header, ""),
    };
    let (main, sub) = essence.trim().split_once('/')?;
    if !is_token(main) || !is_token(sub) {
        return None;
    }
    let mut seen: Vec<String> = Vec::new();
    loop {
        rest = rest.trim_start();
        if matches!(rest.trim_end(), "" | ";") {
            return Some(essence.trim());
        }
        let (name, value) = rest.strip_prefix(';')?.trim_start().split_once('=')?;
        let name = name.to_ascii_lowercase();
        if !is_token(&name) || seen.contains(&name) {
            return None;
        }
        seen.push(name);
        rest = after_value(value)?;
    }
}

/// The rest after the value of a parameter, which is a token or a quoted string.
fn after_value(text: &str) -> Option<&str> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|char: char| !is_token_char(char)).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end)?;
        return (!value.is_empty()).then_some(rest);
    };
    let mut escaped = false;
    for (at, char) in quoted.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return quoted.get(at + 1..),
            '\r' | '\n' => return None,
            _ => {}
        }
    }
    None
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token_char)
}

fn is_token_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char)
}

fn unsupported(known: &[&str]) -> StatusError {
    let known = known.join(", ");
    let message = format!("the body of the request was in an unknown format - accepted media types include: {known}");
    StatusError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_objects_are_read_whatever_their_case_and_parameters() {
        let fine = ["application/yaml", "Application/YAML", "application/yaml; charset=utf-8", " application/yaml ;"];
        for header in fine.into_iter().chain(["application/yaml;a=\"b;c\\\"d\";e=f"]) {
            assert_eq!(object(Some(header)), Ok(MediaType::Yaml), "{header}");
        }
        let refused =
            ["application/yaml; charset", "application/yaml;a=1;A=2", "application", "application/*", "a b/yaml"];
        for header in refused.into_iter().chain(["application/yaml;a=\"b", "application/yaml;=b", "application/x-yaml"])
        {
            assert_eq!(object(Some(header)).map_err(|status| status.code), Err(415), "{header}");
        }
        assert_eq!((object(None), object(Some(""))), (Ok(MediaType::Json), Ok(MediaType::Json)));
    }

    #[test]
    fn types_of_patches_are_compared_as_they_are_written() {
        let message = |header: &str, custom| patch(Some(header), custom).map_err(|status| status.message);
        for custom in [true, false] {
            assert_eq!(message("application/merge-patch+json; charset=utf-8", custom), Ok(PatchType::Merge));
        }
        let routed = Err("415: Unsupported Media Type".to_owned());
        assert_eq!(message("Application/Merge-Patch+JSON", false), routed);
        assert_eq!(message("", false), routed);
        let handled = |header, custom| message(header, custom).expect_err("a refusal");
        let list = "accepted media types include: application/json-patch+json, application/merge-patch+json, ";
        // The router ignores a space and further types, the handler does not.
        assert!(handled("application/merge-patch+json ;a=b", false).contains(list));
        assert!(handled("application/merge-patch+json, text/plain", false).contains(list));
        assert!(handled("Application/Merge-Patch+JSON", true).contains(list));
        assert!(handled("application/strategic-merge-patch+json", true).ends_with("application/apply-patch+yaml"));
    }
}
