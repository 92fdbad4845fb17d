use super::*;

fn th(percent: f64, precision: u8) -> String {
    Threshold::from_probability(percent / 100.0, precision).unwrap().hex().to_string()
}

#[test]
fn a_probability_becomes_the_digits_of_the_specification() {
    assert_eq!(th(100.0, 4), "0");
    assert_eq!(th(50.0, 4), "8");
    assert_eq!(th(25.0, 4), "c");
    assert_eq!(th(1.0, 0), "fd70a3d70a3d71");
    assert_eq!(th(40.0, 3), "99a");
    assert_eq!(th(20.0, 6), "cccccd");
}

#[test]
fn digits_are_added_where_a_probability_is_close_to_none_or_all() {
    assert_eq!(th(1.0, 4), "fd70a");
    assert_eq!(th(1.0, 3), "fd71");
    assert_eq!(th(100.0 / 16384.0, 4), "fffc");
    let almost_all = f64::from(((1.0 - 8e-7) * 100.0) as f32);
    assert_eq!(th(almost_all, 10), "00000cccccccd");
}

#[test]
fn what_is_no_probability_has_no_threshold() {
    for bad in [0.0, -0.5, 1.000_001, f64::NAN, f64::INFINITY, MIN_PROBABILITY / 2.0] {
        assert_eq!(Threshold::from_probability(bad, 4), None, "{bad}");
    }
    let least = Threshold::from_probability(MIN_PROBABILITY, 4).unwrap();
    assert_eq!(least.hex().as_str(), "ffffffffffffff");
    assert!(least.keeps(Randomness::MAX));
}

#[test]
fn a_threshold_reads_what_it_writes() {
    for text in ["0", "8", "c", "fd70a", "00000ccccccccd", "ffffffffffffff"] {
        assert_eq!(Threshold::parse(text.as_bytes()).unwrap().hex().as_str(), text);
    }
    assert_eq!(Threshold::parse(b"80000000000000").unwrap().hex().as_str(), "8");
    assert_eq!(Threshold::parse(b"FD").unwrap(), Threshold::parse(b"fd").unwrap());
    for bad in ["", "g", "-1", "+1", "abababababababab", "000000000000000"] {
        assert_eq!(Threshold::parse(bad.as_bytes()), None, "{bad}");
    }
    assert_eq!(Threshold::NEVER.hex().as_str(), "");
}

#[test]
fn randomness_is_the_end_of_a_trace_id() {
    let id = [0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0x80, 0, 0, 0, 0, 0, 1];
    let randomness = Randomness::from_trace_id(&id).unwrap();
    assert_eq!(randomness.hex().as_str(), "80000000000001");
    assert_eq!(Randomness::parse(b"80000000000001"), Some(randomness));
    assert_eq!(Randomness::from_trace_id(&[0; 16]), None);
    assert_eq!(Randomness::from_trace_id(&[1; 15]), None);
    assert_eq!(Randomness::parse(b"8000000000000"), None);
    assert!(Threshold::from_probability(0.5, 4).unwrap().keeps(randomness));
    assert!(!Threshold::from_probability(0.49, 4).unwrap().keeps(randomness));
    assert!(!Threshold::NEVER.keeps(Randomness::MAX));
}

#[test]
fn a_kept_item_stands_for_the_inverse_of_its_probability() {
    assert_eq!(Threshold::parse(b"c").unwrap().adjusted_count(), 4.0);
    assert_eq!(Threshold::ALWAYS.adjusted_count(), 1.0);
    assert_eq!(Threshold::NEVER.adjusted_count(), 0.0);
}
