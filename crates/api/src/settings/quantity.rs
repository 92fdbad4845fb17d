//! Amounts of CPU and memory.

use crate::{
    Problem, Reason,
    v1alpha1::{Quantity, Resources},
};

/// Checks that all are amounts, and that no container requests more than it may use: no pod could ever be made.
pub(super) fn check(path: &str, resources: Option<&Resources>, problems: &mut Vec<Problem>) {
    let Some(Resources { requests, limits }) = resources else { return };
    let mut refuse = |path: String, message: &str| {
        problems.push(Problem { path, reason: Reason::SettingInvalid, message: message.to_owned() });
    };
    for (field, amounts) in [("requests", requests), ("limits", limits)] {
        for (name, _) in amounts.iter().filter(|(_, amount)| value(amount).is_none()) {
            refuse(format!("{path}.{field}[{name}]"), "is no amount; write it as 100m, 2 or 512Mi");
        }
    }
    for (name, request) in requests {
        let limit = limits.get(name).and_then(value);
        if value(request).zip(limit).is_some_and(|(request, limit)| request > limit) {
            refuse(format!("{path}.requests[{name}]"), "is more than its limit");
        }
    }
}

/// An amount as a number: exact enough to compare two of them.
fn value(amount: &Quantity) -> Option<f64> {
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
    let text = amount.0.as_str();
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
        let read = |text: &str| value(&Quantity(text.into()));
        let amounts =
            [("2", 2.0), ("100m", 0.1), ("1.5", 1.5), ("1k", 1e3), ("2Mi", 2097152.0), ("1e3", 1e3), ("1E", 1e18)];
        assert!(amounts.iter().all(|(text, amount)| read(text) == Some(*amount)));
        assert!(["", "m", "-1", "1 Mi", "inf", "NaN", "1mm", "0x1", "+1"].iter().all(|text| read(text).is_none()));
    }
}
