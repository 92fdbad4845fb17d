//! `IntOrString` values that are numbers or percentages.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The rounding of fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Up,
    Down,
}

/// The number, or the percentage of `all`. Invalid values count as none: the API server admits only valid ones.
pub fn scaled_value(given: &IntOrString, all: i32, rounding: Rounding) -> i32 {
    match given {
        IntOrString::Int(number) => *number,
        IntOrString::String(share) => {
            let percent: i64 = share.strip_suffix('%').and_then(|percent| percent.parse().ok()).unwrap_or(0);
            let parts = i64::from(all).saturating_mul(percent);
            let up = i64::from(rounding == Rounding::Up && parts % 100 > 0);
            i32::try_from(parts / 100 + up).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_as_asked() {
        let quarter = IntOrString::String("25%".to_owned());
        assert_eq!(scaled_value(&quarter, 10, Rounding::Up), 3);
        assert_eq!(scaled_value(&quarter, 10, Rounding::Down), 2);
        assert_eq!(scaled_value(&quarter, 8, Rounding::Up), 2);
        assert_eq!(scaled_value(&IntOrString::Int(7), 3, Rounding::Up), 7);
        assert_eq!(scaled_value(&IntOrString::String("many".to_owned()), 3, Rounding::Up), 0);
    }
}
