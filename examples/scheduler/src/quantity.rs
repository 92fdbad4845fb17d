//! Kubernetes quantities: `1500m`, `2Gi`, `1e3`.

/// Decimal suffixes with their power of ten.
const DECIMAL_SUFFIXES: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The amount in thousandths, rounded up as in Kubernetes; none if it is invalid or overflows.
pub fn parse_thousandths(text: &str) -> Option<i128> {
    if let Some((number, power)) = strip_suffix(text, &BINARY_SUFFIXES) {
        let (digits, scale) = parse_decimal(number)?;
        return round(digits.checked_mul(1_i128.checked_shl(power)?)?, scale.checked_add(3)?);
    }
    if let Some((number, power)) = strip_suffix(text, &DECIMAL_SUFFIXES) {
        let (digits, scale) = parse_decimal(number)?;
        return round(digits, scale.checked_add(power)?.checked_add(3)?);
    }
    let (number, power) = match text.split_once(['e', 'E']) {
        Some((number, power)) => (number, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (digits, scale) = parse_decimal(number)?;
    round(digits, scale.checked_add(power)?.checked_add(3)?)
}

fn strip_suffix<'t, T: Copy>(text: &'t str, suffixes: &[(&str, T)]) -> Option<(&'t str, T)> {
    suffixes.iter().find_map(|(suffix, power)| Some((text.strip_suffix(suffix)?, *power)))
}

/// Splits a decimal number into digits and a power of ten.
fn parse_decimal(number: &str) -> Option<(i128, i32)> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    if !is_digits(unsigned) || !is_digits(part) || (unsigned.is_empty() && part.is_empty()) {
        return None;
    }
    Some((format!("{whole}{part}").parse().ok()?, -i32::try_from(part.len()).ok()?))
}

/// `digits` times ten to the power of `scale`, rounded away from zero.
fn round(digits: i128, scale: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(scale.unsigned_abs());
    if scale >= 0 {
        return if digits == 0 { Some(0) } else { digits.checked_mul(factor?) };
    }
    let Some(factor) = factor else { return Some(digits.signum()) };
    let rest = if digits % factor == 0 { 0 } else { digits.signum() };
    (digits / factor).checked_add(rest)
}

#[cfg(test)]
mod tests;
