use super::*;

fn variables() -> EnvVariables {
    let mut variables = EnvVariables::default();
    variables.set("A", "1").unwrap();
    variables.set("EMPTY", "").unwrap();
    variables
}

#[test]
fn references_are_replaced_as_the_kubelet_does() {
    for (text, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)y$(A)z", "x1y1z"),
        ("$(EMPTY)", ""),
        ("$(NONE)", "$(NONE)"),
        ("$()", "$()"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$(A$(A)", "$(A$(A)"),
        ("100$", "100$"),
        ("$$", "$"),
        ("ü$(A)ü", "ü1ü"),
    ] {
        assert_eq!(variables().expand(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_grows_without_end_is_refused() {
    let mut variables = variables();
    variables.set("V0", "0123456789").unwrap();
    let mut grown = Ok(());
    for step in 0..64 {
        grown = variables
            .expand(&format!("$(V{step})$(V{step})"))
            .and_then(|value| variables.set(format!("V{}", step + 1), value));
        if grown.is_err() {
            break;
        }
    }
    assert_eq!(grown, Err(TooLong));
}
