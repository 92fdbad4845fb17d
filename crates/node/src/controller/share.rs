//! A number, or a share of another number: `maxSurge: 2`, `maxUnavailable: 25%`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a share is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Round {
    Up,
    Down,
}

/// The number, or the share of `whole`. What is neither (the API server takes none) is nothing.
pub fn of(value: &IntOrString, whole: i64, round: Round) -> i64 {
    let percent = match value {
        IntOrString::Int(number) => return i64::from(*number).max(0),
        IntOrString::String(text) => text.strip_suffix('%').and_then(|number| number.parse::<u32>().ok()).unwrap_or(0),
    };
    let hundredths = whole.max(0).saturating_mul(percent.into());
    match round {
        Round::Up => hundredths.saturating_add(99) / 100,
        Round::Down => hundredths / 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str, whole: i64) -> (i64, i64) {
        let value = IntOrString::String(text.into());
        (of(&value, whole, Round::Down), of(&value, whole, Round::Up))
    }

    #[test]
    fn a_share_is_rounded_either_way() {
        assert_eq!(share("25%", 10), (2, 3));
        assert_eq!(share("50%", 10), (5, 5));
        assert_eq!(share("0%", 10), (0, 0));
        assert_eq!(share("1%", i64::MAX), (i64::MAX / 100, i64::MAX / 100));
    }

    #[test]
    fn a_number_is_itself_and_nonsense_is_nothing() {
        assert_eq!(of(&IntOrString::Int(3), 10, Round::Up), 3);
        assert_eq!(of(&IntOrString::Int(-3), 10, Round::Up), 0);
        assert_eq!(share("many", 10), (0, 0));
    }
}
