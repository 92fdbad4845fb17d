//! Selectors, query parameters, headers and the small notations of Kubernetes.

use http::{HeaderMap, HeaderName, HeaderValue};
use kubewake_apiserver::{
    codec::{
        Media,
        accept::{Answer, Endpoint, negotiate, negotiate_plain},
        content_type,
        query::{Continue, DeleteOptions, GetOptions, ListOptions, LogOptions, Query, WriteOptions},
        selector::{FieldSelector, LabelSelector},
    },
    fuzzing::{cron as our_cron, trace_context},
    kinds::jsonpath,
    schema::quantity::{self as our_quantity, Quantity},
};
use serde_json::Value;

use crate::{memory::bounded, two_texts};

/// A selector reads the same with labels that are there and labels that are not, and takes a multiple of its text.
pub(super) fn label_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = bounded("LabelSelector::parse", text.len(), 256, 16 << 10, || LabelSelector::parse(text));
    let Ok(selector) = parsed else { return };
    assert_eq!(selector.is_everything(), selector.requirements().is_empty());
    let get = |key: &str| key.len().is_multiple_of(2).then_some("value");
    let each = selector.requirements().iter().all(|requirement| requirement.matches(get(&requirement.key)));
    assert_eq!(selector.matches(get), each);
}

/// A selector of a name alone says what that name is.
pub(super) fn field_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = bounded("FieldSelector::parse", text.len(), 256, 16 << 10, || FieldSelector::parse(text));
    let Ok(selector) = parsed else { return };
    assert_eq!(selector.is_everything(), selector.terms().is_empty());
    if let Some(name) = selector.exact("metadata.name") {
        assert!(selector.terms().iter().any(|term| term.value == name && !term.not));
    }
}

/// Every verb reads its options, and those that are accepted are within their limits.
pub(super) fn query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let query = bounded("Query::parse", text.len(), 128, 16 << 10, || Query::parse(text));
    if let Ok(options) = ListOptions::from_query(&query) {
        let _ = options.version_of_list();
    }
    let _ = GetOptions::from_query(&query).and_then(|options| options.version());
    let _ = (WriteOptions::create(&query), WriteOptions::update(&query), WriteOptions::patch(&query, true));
    let _ = LogOptions::from_query(&query, "pod");
    for media in [Media::Json, Media::Yaml, Media::Protobuf] {
        if let Ok(options) = DeleteOptions::read(&query, media, data) {
            let _ = options.propagation();
        }
    }
}

/// A token that was read is the same when it is written and read again, and stays below its own prefix.
pub(super) fn continue_token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(token) = Continue::decode(text) else { return };
    assert!(!token.start.split('/').any(|step| step == ".."));
    assert_eq!(Continue::decode(&token.encode()).ok(), Some(token));
}

/// Negotiation ends in a media type that the endpoint has.
pub(super) fn accept(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (accept, query) = text.split_once('\n').unwrap_or((text, ""));
    let query = Query::parse(query);
    for answer in [Answer::Object, Answer::List, Answer::Watch] {
        for custom in [false, true] {
            if let Ok(chosen) = negotiate(Some(accept), None, &query, Endpoint { custom, answer }) {
                assert!(!(answer == Answer::Watch && chosen.media == Media::Yaml), "a watch is never in YAML");
            }
        }
    }
    let _ = negotiate_plain(Some(accept), Some("curl/8"), &query);
    let _ = (content_type::object(Some(accept)), content_type::patch(Some(accept), true));
}

/// The canonical form of a quantity is its own, and is the same amount.
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

/// A path finds a part of the object.
pub(super) fn json_path(data: &[u8]) {
    let Some((path, object)) = two_texts(data) else { return };
    let Ok(object) = serde_json::from_str::<Value>(object) else { return };
    if let Some(found) = jsonpath::first(&object, path) {
        assert!(super::depth(found) <= super::depth(&object));
        let _ = jsonpath::shown(found);
    }
}

/// A schedule is valid or not, whatever the text.
pub(super) fn cron(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = bounded("cron", text.len(), 64, 64 << 10, || our_cron(text));
}

/// A context that was read from headers is written as it was, and is bounded.
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
