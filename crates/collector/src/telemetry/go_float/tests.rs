use super::*;

#[test]
fn bounds_look_as_in_a_scrape_of_the_collector() {
    let of = |v: f64| format_shortest(v, 6);
    assert_eq!([of(10.0), of(100_000.0), of(1e6), of(9e6)], ["10", "100000", "1e+06", "9e+06"]);
    assert_eq!([of(48_254_976.0), of(0.07), of(0.0), of(8.527_246_452)], ["4.8254976e+07", "0.07", "0", "8.527246452"]);
}

#[test]
fn small_and_large_numbers_have_an_exponent() {
    assert_eq!([format_shortest(0.0001, 21), format_shortest(0.00001, 21)], ["0.0001", "1e-05"]);
    assert_eq!([format_shortest(1e20, 21), format_shortest(1.5e21, 21)], ["100000000000000000000", "1.5e+21"]);
    assert_eq!(format_shortest(-2.5e-7, 21), "-2.5e-07");
}

#[test]
fn what_is_not_finite_has_a_name() {
    let of = |v: f64| format_shortest(v, 6);
    assert_eq!([of(f64::INFINITY), of(f64::NEG_INFINITY), of(f64::NAN)], ["+Inf", "-Inf", "NaN"]);
}
