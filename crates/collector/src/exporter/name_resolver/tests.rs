use kubewake_otlp::{
    view::{LogRecord, MessageView},
    wire::{put_bytes, put_uint},
};
use proptest::prelude::*;

use super::*;

/// Letters, digits and `-`; anything else is `_`.
const RULES: NameRules =
    NameRules { sanitize: |c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }, max_value_bytes: 8 };

/// 2024-02-29T23:30:00Z
const TIME: u64 = 1_709_249_400_000_000_000;

/// The content of a message with these attributes in field `number`.
fn with_attributes(number: u32, attributes: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in attributes {
        let mut pair = Vec::new();
        put_bytes(&mut pair, 1, key.as_bytes());
        put_bytes(&mut pair, 2, value);
        put_bytes(&mut out, number, &pair);
    }
    out
}

fn text(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, value);
    out
}

fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_uint(&mut out, 3, value);
    out
}

/// The name for these attributes of the resource and of the record.
fn name(
    template: &str,
    allowed: &[&str],
    resource: &[(&str, Vec<u8>)],
    record: &[(&str, Vec<u8>)],
) -> Result<String, MissingAttribute> {
    let allowed: Vec<String> = allowed.iter().map(|key| (*key).to_owned()).collect();
    let resolver = NameResolver::new(NameTemplate::parse(template).unwrap(), &allowed, RULES);
    let resource = with_attributes(1, resource);
    let record = with_attributes(6, record);
    let subject = NameSubject {
        resource: Resource::new(&resource),
        attributes: LogRecord::new(&record).attributes(),
        time: TIME,
    };
    let mut out = String::from("<");
    let result = resolver.resolve(&subject, &mut out);
    assert!(result.is_ok() || out == "<", "nothing is left after an error: {out}");
    result.map(|()| out.split_off(1))
}

#[test]
fn name_is_made_of_texts_values_and_dates() {
    let resource = [("ns", text(b"shop")), ("n", number(7))];
    assert_eq!(name("a/%{ns}-%{n}-%{+yyyy.MM.dd_HH}", &[], &resource, &[]).unwrap(), "a/shop-7-2024.02.29_23");
}

#[test]
fn record_does_not_choose_the_name() {
    let record = [("ns", text(b"evil"))];
    assert_eq!(name("%{ns}", &[], &[], &record), Err(MissingAttribute));
    assert_eq!(name("%{ns:-none}", &[], &[], &record).unwrap(), "none");
    assert_eq!(name("%{ns}", &["other"], &[], &record), Err(MissingAttribute));
}

#[test]
fn allowed_attribute_of_the_record_is_used_when_the_resource_has_none() {
    let record = [("ns", text(b"own"))];
    assert_eq!(name("%{ns}", &["ns"], &[], &record).unwrap(), "own");
    assert_eq!(name("%{ns}", &["ns"], &[("ns", text(b"shop"))], &record).unwrap(), "shop", "the resource wins");
}

#[test]
fn values_are_sanitized_and_cut_and_texts_are_not() {
    let cases: [(&[u8], &str); 5] = [
        (b"../x", "___x"),
        (b"a\r\nb\0c", "a__b_c"),
        ("äöü".as_bytes(), "___"),
        (b"\xff\xfe", "__"),
        (b"123456789", "12345678"),
    ];
    for (value, expected) in cases {
        assert_eq!(name("../%{a}", &[], &[("a", text(value))], &[]).unwrap(), format!("../{expected}"));
    }
}

#[test]
fn empty_value_or_a_list_counts_as_missing() {
    let list = [42, 0].to_vec();
    for value in [text(b""), list, Vec::new()] {
        assert_eq!(name("%{a}", &[], &[("a", value.clone())], &[]), Err(MissingAttribute));
        assert_eq!(name("%{a:-d}", &[], &[("a", value)], &[]).unwrap(), "d");
    }
}

#[test]
fn only_allowed_attributes_and_dates_make_names_differ_within_a_resource() {
    let resolver = |template: &str, allowed: &[String]| {
        NameResolver::new(NameTemplate::parse(template).unwrap(), allowed, RULES).depends_on_record()
    };
    assert!(!resolver("%{a}", &[]) && !resolver("%{a}", &["b".into()]));
    assert!(resolver("%{a}", &["a".into()]) && resolver("%{+dd}", &[]));
}

proptest! {
    #[test]
    fn any_value_becomes_a_name_within_the_rules(value in proptest::collection::vec(any::<u8>(), 1..40)) {
        let name = name("%{a}", &[], &[("a", text(&value))], &[]).unwrap();
        prop_assert!(name.len() <= RULES.max_value_bytes);
        prop_assert!(name.chars().all(|c| (RULES.sanitize)(c) == c));
    }
}
