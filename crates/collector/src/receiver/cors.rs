//! CORS: cross-origin requests, so that a web page can send its own spans.

use http::{HeaderMap, HeaderValue, Method, header};
use kubewake_config::model::CorsConfig;

pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Headers of the response to a cross-origin request; none if the origin is not allowed.
pub(super) fn response_headers(cors: &CorsConfig, request: &HeaderMap) -> Vec<(header::HeaderName, HeaderValue)> {
    let Some(origin) = allowed_origin(cors, request) else { return Vec::new() };
    let mut out =
        vec![(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin), (header::VARY, HeaderValue::from_static("Origin"))];
    if let Ok(exposed) = HeaderValue::from_str(&cors.exposed_headers.join(", "))
        && !exposed.is_empty()
    {
        out.push((header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed));
    }
    out
}

/// Headers of the response to a preflight request.
pub(super) fn preflight_headers(cors: &CorsConfig, request: &HeaderMap) -> Vec<(header::HeaderName, HeaderValue)> {
    let mut out = response_headers(cors, request);
    if out.is_empty() {
        return out;
    }
    out.push((header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST")));
    if let Some(wanted) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS)
        && wanted.to_str().is_ok_and(|w| w.split(',').all(|name| allowed_header(cors, name.trim())))
    {
        out.push((header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone()));
    }
    if cors.max_age > 0 {
        out.push((header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from(cors.max_age)));
    }
    out
}

fn allowed_origin(cors: &CorsConfig, request: &HeaderMap) -> Option<HeaderValue> {
    let origin = request.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?.to_ascii_lowercase();
    cors.allowed_origins.iter().any(|pattern| matches(&pattern.to_ascii_lowercase(), &text)).then(|| origin.clone())
}

/// A pattern with at most one `*`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.len() >= head.len() + tail.len() && text.starts_with(head) && text.ends_with(tail),
    }
}

/// Headers that browsers may always send, those that OTLP needs, and those that the settings name.
fn allowed_header(cors: &CorsConfig, name: &str) -> bool {
    const SAFELISTED_HEADERS: [&str; 5] =
        ["accept", "accept-language", "content-language", "content-type", "x-requested-with"];
    let named = |h: &String| h == "*" || h.eq_ignore_ascii_case(name);
    SAFELISTED_HEADERS.iter().any(|safe| safe.eq_ignore_ascii_case(name)) || cors.allowed_headers.iter().any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (http::HeaderName::from_static(k), HeaderValue::from_static(v))).collect()
    }

    fn cors() -> CorsConfig {
        CorsConfig { allowed_origins: vec!["https://*.example.com".into()], max_age: 600, ..CorsConfig::default() }
    }

    #[test]
    fn a_preflight_from_an_allowed_origin_is_answered() {
        let request = headers(&[
            ("origin", "https://app.example.com"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ]);
        assert!(is_preflight(&Method::OPTIONS, &request));
        let answer: HeaderMap = preflight_headers(&cors(), &request).into_iter().collect();
        assert_eq!(answer["access-control-allow-origin"], "https://app.example.com");
        assert_eq!(answer["access-control-allow-headers"], "content-type");
        assert_eq!(answer["access-control-max-age"], "600");
    }

    #[test]
    fn another_origin_gets_no_permission() {
        let request = headers(&[("origin", "https://evil.test"), ("access-control-request-method", "POST")]);
        assert!(preflight_headers(&cors(), &request).is_empty());
        assert!(!matches("https://*.example.com", "https://.example.co"));
        assert!(matches("*", "https://anything.test"));
    }

    #[test]
    fn a_header_that_is_not_allowed_is_not_named() {
        let request = headers(&[
            ("origin", "https://app.example.com"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "x-secret"),
        ]);
        let answer: HeaderMap = preflight_headers(&cors(), &request).into_iter().collect();
        assert!(!answer.contains_key("access-control-allow-headers"));
    }
}
