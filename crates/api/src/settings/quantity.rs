//! Quantities of CPU and memory.

/// A quantity as a number, exact enough for comparisons.
pub(super) fn parse_quantity(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 14] = [
        ("Ki", 1024.0),
        ("Mi", 1048576.0),
        ("Gi", 1073741824.0),
        ("Ti", 1099511627776.0),
        ("Pi", 1125899906842624.0),
        ("Ei", 1152921504606846976.0),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    let number = |digits: &str, factor: f64| {
        let plain = digits.starts_with(|c: char| c.is_ascii_digit());
        digits.parse::<f64>().ok().filter(|value| plain && value.is_finite()).map(|value| value * factor)
    };
    SUFFIXES.iter().find_map(|(suffix, factor)| number(text.strip_suffix(suffix)?, *factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_kubernetes_writes_them() {
        let amounts =
            [("2", 2.0), ("100m", 0.1), ("1.5", 1.5), ("1k", 1e3), ("2Mi", 2097152.0), ("1e3", 1e3), ("1E", 1e18)];
        assert!(amounts.iter().all(|(text, amount)| parse_quantity(text) == Some(*amount)));
        assert!(
            ["", "m", "-1", "1 Mi", "inf", "NaN", "1mm", "0x1", "+1"].iter().all(|text| parse_quantity(text).is_none())
        );
    }
}
