use proptest::prelude::*;
use serde_json::json;

use super::*;

fn written(text: &str) -> String {
    canonical(text).unwrap().into_owned()
}

#[test]
fn amounts_come_back_in_canonical_form() {
    let forms = [
        ("0.1", "100m"),
        ("1024Mi", "1Gi"),
        ("1.5", "1500m"),
        ("2000000000", "2G"),
        ("1.5Gi", "1536Mi"),
        ("1", "1"),
        ("1e9", "1e9"),
        ("1E9", "1E9"),
        ("1000e9", "1e12"),
        ("0", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("0Ki", "0"),
        ("1000", "1k"),
        ("1000m", "1"),
        ("-1.5Gi", "-1536Mi"),
        ("0.5Ki", "512"),
        ("1023", "1023"),
        ("512Ki", "512Ki"),
        ("2048Ki", "2Mi"),
        ("0.5m", "500u"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("100E", "100E"),
        (".5", "500m"),
        ("5.", "5."),
        ("100M", "100M"),
        ("1e-3", "1e-3"),
        ("12e-10", "2e-9"),
        ("9223372036854775807", "9223372036854775807"),
        ("9999999999999999999999", "9999999999999999999999"),
        ("10Ei", "9223372036854775807"),
        ("0.1Ki", "102400m"),
    ];
    for (given, expected) in forms {
        assert_eq!(written(given), expected, "{given}");
    }
}

#[test]
fn what_looks_canonical_stays_as_it_is() {
    for text in ["1.500", "+1", "010", "05Ki", "1500m", "1.250k", "3Mi"] {
        assert_eq!(written(text), text);
    }
    assert_eq!(written("1.000"), "1");
}

#[test]
fn what_is_no_quantity_is_refused_in_kubernetes_words() {
    for text in ["", "abc", "1.5.2", "1 Gi", "1x", "one", "1e5m", "{}", "true", "1é"] {
        assert_eq!(Quantity::parse(text).unwrap_err(), QuantityError::Format, "{text}");
    }
    for text in ["1mm", "1Kii", "1e", "1kk", "1K", "5i"] {
        let error = Quantity::parse(text).unwrap_err();
        assert!(error == QuantityError::Suffix, "{text}: {error}");
    }
    assert_eq!(Quantity::parse(&"9".repeat(100)).unwrap_err(), QuantityError::Numeric);
    assert_eq!(Quantity::parse("-").unwrap(), Quantity::ZERO);
}

#[test]
fn amounts_compare_by_value() {
    let sorted = ["-1Gi", "-1", "0", "1n", "1m", "0.5", "1", "1001m", "1k", "1Ki", "1M", "1Mi", "1e30", "1e1000"];
    for (index, small) in sorted.iter().enumerate() {
        for large in &sorted[index + 1..] {
            assert!(Quantity::parse(small).unwrap() < Quantity::parse(large).unwrap(), "{small} < {large}");
        }
    }
    assert_eq!(Quantity::parse("1000m").unwrap(), Quantity::parse("1").unwrap());
    assert_eq!(Quantity::parse("1Ki").unwrap(), Quantity::parse("1024").unwrap());
    assert_eq!(Quantity::parse("1e3").unwrap(), Quantity::parse("1k").unwrap());
    assert_eq!(Quantity::from_value(&json!(1.5)), Quantity::from_value(&json!("1500m")));
    assert_eq!(Quantity::from_value(&json!(["1"])), None);
}

#[test]
fn whole_numbers_are_known() {
    assert!(Quantity::parse("2").unwrap().is_integer());
    assert!(Quantity::parse("2000m").unwrap().is_integer());
    assert!(!Quantity::parse("1500m").unwrap().is_integer());
    assert!(Quantity::parse("1e300").unwrap().is_integer());
}

proptest! {
    #[test]
    fn canonical_forms_are_stable(text in "[+-]?[0-9]{1,20}(\\.[0-9]{0,20})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?") {
        if let Ok(first) = canonical(&text) {
            prop_assert_eq!(canonical(&first).unwrap(), first.clone());
            prop_assert_eq!(Quantity::parse(&first).unwrap(), Quantity::parse(&text).unwrap());
        }
    }

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = canonical(&text);
    }

    #[test]
    fn integers_keep_their_value(value: i64) {
        let quantity = Quantity::parse(&value.to_string()).unwrap();
        prop_assert_eq!(quantity, Quantity::from_int(value));
        prop_assert!(quantity.is_integer());
        prop_assert_eq!(quantity.is_negative(), value < 0);
        prop_assert_eq!(Quantity::parse(&quantity.to_string()).unwrap(), Quantity::from_int(value));
    }
}

#[test]
fn zero_fits_at_every_scale() {
    for text in ["0", "0E200", "E000000200", "0e-200", "-0Ei"] {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!((quantity.to_int(), quantity.scaled(-9), quantity.scaled(3)), (Some(0), Some(0), Some(0)), "{text}");
    }
}

#[test]
fn amounts_count_in_units() {
    let units = |text: &str, scale| Quantity::parse(text).unwrap().units(scale);
    assert_eq!([units("1500m", -3), units("1500m", 0), units("-1500m", 0)], [1500, 2, -2]);
    assert_eq!([units("2Gi", 0), units("2k", -3), units("1n", -3)], [2 << 30, 2_000_000, 1]);
    assert_eq!([units("8E", -9), units("-8E", -9), units("0", -9)], [i64::MAX, i64::MIN, 0]);
    assert_eq!(Quantity::in_units(1500, -3).to_string(), "1500m");
    assert_eq!(Quantity::in_units(2_000_000, -3).to_string(), "2k");
    assert_eq!([Quantity::bytes(3 << 20).to_string(), Quantity::bytes(1025).to_string()], ["3Mi", "1025"]);
}
