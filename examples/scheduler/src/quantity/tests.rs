use super::*;

#[test]
fn amounts_are_read_as_kubernetes_does() {
    for (text, expected) in [
        ("1", 1000),
        ("100m", 100),
        ("1.5", 1500),
        (".5", 500),
        ("2Ki", 2_048_000),
        ("1.5Gi", 1_610_612_736_000),
        ("1k", 1_000_000),
        ("1E", 1_000_000_000_000_000_000_000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1u", 1),
        ("1500u", 2),
        ("-1500u", -2),
        ("0", 0),
        ("1e-30", 1),
    ] {
        assert_eq!(parse_thousandths(text), Some(expected), "{text}");
    }
}

#[test]
fn what_is_no_amount_is_none() {
    for text in
        ["", "m", "1.2.3", "1 Gi", "1x", "--1", "1e", "1e99", "Ki", "1Kii", "99999999999999999999999999999999Ei"]
    {
        assert_eq!(parse_thousandths(text), None, "{text}");
    }
}
