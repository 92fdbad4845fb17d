use super::*;

fn rewritten(text: &str, threshold: Option<Threshold>, randomness: Option<Randomness>) -> String {
    let mut out = Vec::new();
    TraceState::parse(text.as_bytes()).unwrap().write(threshold, randomness, &mut out);
    // A written state can be read, and has the written values.
    let again = TraceState::parse(&out).unwrap();
    assert_eq!(again.threshold(), threshold);
    String::from_utf8(out).unwrap()
}

fn half() -> Option<Threshold> {
    Threshold::from_probability(0.5, 4)
}

#[test]
fn th_and_rv_are_read() {
    let state = TraceState::parse(b"a=b, ot=th:8;rv:9b8233f7e3a151;x:y ,c@d=e f").unwrap();
    assert_eq!(state.threshold(), half());
    assert_eq!(state.randomness(), Randomness::parse(b"9b8233f7e3a151"));
    assert_eq!(TraceState::parse(b"").unwrap().threshold(), None);
    assert_eq!(TraceState::parse(b"ot=th:8,ot=x:1").unwrap().threshold(), None, "the last one counts");
}

#[test]
fn ot_comes_first_and_everything_else_stays() {
    assert_eq!(rewritten("", half(), None), "ot=th:8");
    assert_eq!(rewritten("a=b", half(), Randomness::parse(b"00000000000001")), "ot=rv:00000000000001;th:8,a=b");
    assert_eq!(
        rewritten("a=b,,ot=p:8;th:c;rv:FD70A3D70A3D71 , c=d", half(), Some(Randomness::MAX)),
        "ot=rv:FD70A3D70A3D71;th:8;p:8,a=b,c=d"
    );
    assert_eq!(rewritten("ot=th:c", None, None), "");
    assert_eq!(rewritten("ot=th:c,a=b", None, None), "a=b");
}

#[test]
fn a_full_list_loses_its_last_member_to_ot() {
    let full: Vec<String> = (0..32).map(|n| format!("k{n}=v")).collect();
    let written = rewritten(&full.join(","), half(), None);
    assert_eq!(written.split(',').count(), 32);
    assert!(written.starts_with("ot=th:8,k0=v") && written.ends_with("k30=v"), "{written}");
}

#[test]
fn what_is_written_is_within_the_limits_of_what_is_read() {
    let long = |letter: char| format!("{letter}={}", "v".repeat(252));
    let full = format!("{},{},{},{},z=1", long('a'), long('b'), long('c'), long('d'));
    assert!(full.len() <= MAX_STATE_BYTES && full.len() + "ot=th:8,".len() > MAX_STATE_BYTES);
    let written = rewritten(&full, half(), Some(Randomness::MAX));
    assert!(written.len() <= MAX_STATE_BYTES);
    assert!(written.ends_with(&long('c')), "the last ones go, and none behind them takes their place: {written}");
    let extras = format!("ot=th:8;a:{};b:{}", "1".repeat(122), "2".repeat(122));
    assert!(extras.len() <= OT_KEY.len() + MAX_OT_BYTES);
    let written = rewritten(&extras, half(), Some(Randomness::MAX));
    assert!(written.ends_with(&"1".repeat(122)) && written.starts_with("ot=rv:"), "{written}");
}

#[test]
fn what_is_no_trace_state_is_refused() {
    use TraceStateError::{Randomness, Syntax, Threshold, TooLong};
    let many = vec!["a=b"; 33].join(",");
    let long = format!("a={}", "b".repeat(256));
    let longer = [long.as_str(); 5].join(",");
    let tenant = format!("{}@a=b", "t".repeat(242));
    for (text, error) in [
        ("ot", Syntax),
        ("=b", Syntax),
        ("A=b", Syntax),
        ("1=b", Syntax),
        ("a=", Syntax),
        ("a=b=c", Syntax),
        ("a=\u{e9}", Syntax),
        ("t@1=b", Syntax),
        ("ot=", Syntax),
        ("ot=th", Syntax),
        ("ot=th:8;", Syntax),
        ("ot=:8", Syntax),
        ("ot=th:-1", Threshold),
        ("ot=th:", Threshold),
        ("ot=th:abababababababab", Threshold),
        ("ot=rv:abababababababab", Randomness),
        (&many, TooLong),
        (&longer, TooLong),
        (&tenant, TooLong),
    ] {
        assert_eq!(TraceState::parse(text.as_bytes()), Err(error), "{text}");
    }
    assert!(TraceState::parse(long.as_bytes()).is_ok());
}
