//! Validates the address of an admission or conversion webhook.

use serde_json::{Value, json};

use super::{
    field::{FieldError, FieldErrors},
    text,
};

/// Validates the Service of a webhook. kube-apiserver confuses its name and its namespace, so that the error
/// about a missing one names the other field.
pub fn check_service(service: &Value, path: &str, errors: &mut FieldErrors) {
    let given = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default();
    for (field, other) in [("name", "namespace"), ("namespace", "name")] {
        if given(other).is_empty() {
            errors.push(FieldError::required(format!("{path}.{field}"), ""));
        }
    }
    if let Some(port) = service.get("port").and_then(Value::as_i64) {
        let wrong = text::port_number(port);
        if !wrong.is_empty() {
            let detail = format!("port is not valid: {}", wrong.join(", "));
            errors.push(FieldError::invalid(format!("{path}.port"), &port.into(), &detail));
        }
    }
    let mut wrong =
        |detail: &str| errors.push(FieldError::invalid(format!("{path}.path"), &given("path").into(), detail));
    match given("path") {
        "" | "/" => {}
        "//" => wrong("segment[0] may not be empty"),
        url_path => {
            if !url_path.starts_with('/') {
                wrong("must start with a '/'");
            }
            // The first character is ignored, whatever it is.
            let mut rest = url_path.chars();
            rest.next();
            let rest = rest.as_str();
            for (place, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
                match segment {
                    "" => wrong(&format!("segment[{place}] may not be empty")),
                    segment => {
                        text::subdomain(segment).iter().for_each(|why| wrong(&format!("segment[{place}]: {why}")));
                    }
                }
            }
        }
    }
}

/// Validates the URL of a webhook: HTTPS, without user, query and fragment.
pub fn check_url(url: &str, path: &str, errors: &mut FieldErrors) {
    const FORM: &str = "desired format: https://host[/path]";
    let mut wrong = |value: &str, detail: &str| errors.push(FieldError::invalid(path, &json!(value), detail));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        wrong(scheme, &format!("'https' is the only allowed URL scheme; {FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        wrong("", &format!("host must be specified; {FORM}"));
    }
    if let Some(user) = user {
        wrong(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        wrong(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        wrong(query, "query parameters are not permitted in the URL");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(service: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        check_service(service, "s", &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn service_needs_names_a_port_and_a_path_of_segments() {
        let with = |field: &str, value: Value| {
            let mut of = json!({"name": "a", "namespace": "b", "port": 443});
            of[field] = value;
            service(&of)
        };
        assert_eq!(with("path", json!("/")), [""; 0]);
        assert_eq!(with("path", json!("/a/b.c/")), [""; 0]);
        assert_eq!(with("name", json!("")), ["s.namespace: Required value"]);
        let port = "s.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive";
        assert_eq!(with("port", json!(0)), [port]);
        assert_eq!(with("path", json!("x")).len(), 2, "no slash, and an empty segment");
        assert_eq!(with("path", json!("/a//b")), ["s.path: Invalid value: \"/a//b\": segment[1] may not be empty"]);
        assert!(with("path", json!("/A"))[0].contains("segment[0]: a lowercase RFC 1123 subdomain"));
    }

    #[test]
    fn url_is_https_and_bare() {
        let wrong = |url: &str| {
            let mut errors = Vec::new();
            check_url(url, "u", &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(wrong("https://h/x"), [""; 0]);
        let form = "desired format: https://host[/path]";
        let host = format!("u: Invalid value: \"\": host must be specified; {form}");
        let scheme = format!("u: Invalid value: \"\": 'https' is the only allowed URL scheme; {form}");
        assert_eq!(wrong("https://").as_slice(), std::slice::from_ref(&host));
        assert_eq!(wrong("plain"), [scheme, host]);
        for (url, what) in [("https://u@h", "user information"), ("https://h#f", "fragments"), ("https://h?q", "query")]
        {
            assert!(wrong(url)[0].contains(what), "{url}");
        }
    }
}
