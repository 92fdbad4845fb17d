//! Selectors, query parameters, headers and the small notations of Kubernetes.

use http::{HeaderMap, HeaderName, HeaderValue};
use kubewake_apiserver::{
    codec::{
        MediaType,
        accept::{EndpointRestrictions, ResponseKind, negotiate, negotiate_plain},
        content_type,
        query::{ContinueToken, DeleteOptions, GetOptions, ListOptions, LogOptions, QueryParameters, WriteOptions},
        selector::{FieldSelector, LabelSelector},
    },
    fuzzing::{cron as our_cron, trace_context},
    kinds::jsonpath,
    schema::quantity::{self as our_quantity, Quantity},
};
use serde_json::Value;

use crate::{memory::bounded, two_texts};

/// A selector gives the same result for present and absent labels, and takes a multiple of its text.
pub(super) fn label_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = bounded("LabelSelector::parse", text.len(), 256, 16 << 10, || LabelSelector::parse(text));
    let Ok(selector) = parsed else { return };
    assert_eq!(selector.is_everything(), selector.requirements().is_empty());
    let get = |key: &str| key.len().is_multiple_of(2).then_some("value");
    let each = selector.requirements().iter().all(|requirement| requirement.matches(get(&requirement.key)));
    assert_eq!(selector.matches(get), each);
}

/// A selector of a single name yields that name.
pub(super) fn field_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = bounded("FieldSelector::parse", text.len(), 256, 16 << 10, || FieldSelector::parse(text));
    let Ok(selector) = parsed else { return };
    assert_eq!(selector.is_everything(), selector.terms().is_empty());
    if let Some(name) = selector.exact("metadata.name") {
        assert!(selector.terms().iter().any(|term| term.value == name && !term.not));
    }
}

/// Every verb parses its options, and accepted ones are within their limits.
pub(super) fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let query = bounded("Query::parse", text.len(), 128, 16 << 10, || QueryParameters::parse(text));
    if let Ok(options) = ListOptions::from_query(&query) {
        let _ = options.list_resource_version();
    }
    let _ = GetOptions::from_query(&query).and_then(|options| options.get_resource_version());
    let _ = (WriteOptions::for_create(&query), WriteOptions::for_update(&query), WriteOptions::for_patch(&query, true));
    let _ = LogOptions::from_query(&query, "pod");
    for media in [MediaType::Json, MediaType::Yaml, MediaType::Protobuf] {
        if let Ok(options) = DeleteOptions::from_request(&query, media, data) {
            let _ = options.propagation();
        }
    }
}

/// A continue token survives a round trip, and never leaves its own prefix.
pub(super) fn continue_token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(token) = ContinueToken::decode(text) else { return };
    assert!(!token.start.split('/').any(|step| step == ".."));
    assert_eq!(ContinueToken::decode(&token.encode()).ok(), Some(token));
}

/// Negotiation ends in a media type that the endpoint supports.
pub(super) fn accept(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (accept, query) = text.split_once('\n').unwrap_or((text, ""));
    let query = QueryParameters::parse(query);
    for answer in [ResponseKind::Object, ResponseKind::List, ResponseKind::Watch] {
        for custom in [false, true] {
            if let Ok(chosen) = negotiate(Some(accept), None, &query, EndpointRestrictions { custom, answer }) {
                assert!(
                    !(answer == ResponseKind::Watch && chosen.media == MediaType::Yaml),
                    "a watch is never in YAML"
                );
            }
        }
    }
    let _ = negotiate_plain(Some(accept), Some("curl/8"), &query);
    let _ = (content_type::object(Some(accept)), content_type::patch(Some(accept), true));
}

/// The canonical form of a quantity is stable, and has the same value.
pub(super) fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(amount) = Quantity::parse(text) else { return };
    let canonical = our_quantity::canonical(text).expect("what can be read has a form");
    assert_eq!(our_quantity::canonical(&canonical).expect("the form can be read"), canonical);
    let again = Quantity::parse(&canonical).expect("the form can be read");
    assert_eq!(again, amount, "{text} is not {canonical}");
    assert_eq!((again.is_negative(), again.is_zero()), (amount.is_negative(), amount.is_zero()));
    for scale in [-9, -3, 0, 3] {
        assert_eq!(again.scaled(scale), amount.scaled(scale), "{text} is not {canonical}");
        assert_eq!(again.units(scale), amount.units(scale), "{text} is not {canonical}");
    }
}

/// A path selects a part of the object.
pub(super) fn json_path(data: &[u8]) {
    let Some((path, object)) = two_texts(data) else { return };
    let Ok(object) = serde_json::from_str::<Value>(object) else { return };
    if let Some(found) = jsonpath::find_first(&object, path) {
        assert!(super::depth(found) <= super::depth(&object));
        let _ = jsonpath::format_value(found);
    }
}

/// A schedule is valid or invalid, whatever the text.
pub(super) fn cron(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = bounded("cron", text.len(), 64, 64 << 10, || our_cron(text));
}

/// A context from headers is written unchanged, and is bounded.
pub(super) fn trace_headers(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let Some(context) = trace_context(&headers) else { return };
    let mut written = HeaderMap::new();
    context.inject(&mut written);
    assert!(written.values().map(HeaderValue::len).sum::<usize>() <= 1024);
    assert_eq!(trace_context(&written), Some(context));
}
