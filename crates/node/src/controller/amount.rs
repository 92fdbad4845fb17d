//! Numbers that may be given as a share of all.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What becomes of a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// A started one counts.
    Up,
    /// Only whole ones count.
    Down,
}

/// The number, or so many of `all`. What is neither is none: the API server lets nothing else in.
pub fn of(given: &IntOrString, all: i32, rounding: Rounding) -> i32 {
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
        assert_eq!(of(&quarter, 10, Rounding::Up), 3);
        assert_eq!(of(&quarter, 10, Rounding::Down), 2);
        assert_eq!(of(&quarter, 8, Rounding::Up), 2);
        assert_eq!(of(&IntOrString::Int(7), 3, Rounding::Up), 7);
        assert_eq!(of(&IntOrString::String("many".to_owned()), 3, Rounding::Up), 0);
    }
}
