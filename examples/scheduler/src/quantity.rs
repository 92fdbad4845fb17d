//! Amounts of resources as Kubernetes writes them: `1500m`, `2Gi`, `1e3`.

/// What a suffix stands for: a power of ten, or of two.
const DECIMAL: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The amount in thousandths, rounded up as Kubernetes does; none if it cannot be read or is beyond all measure.
pub fn thousandths(text: &str) -> Option<i128> {
    if let Some((number, power)) = strip(text, &BINARY) {
        let (digits, scale) = digits(number)?;
        return round(digits.checked_mul(1_i128.checked_shl(power)?)?, scale.checked_add(3)?);
    }
    if let Some((number, power)) = strip(text, &DECIMAL) {
        let (digits, scale) = digits(number)?;
        return round(digits, scale.checked_add(power)?.checked_add(3)?);
    }
    let (number, power) = match text.split_once(['e', 'E']) {
        Some((number, power)) => (number, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (digits, scale) = digits(number)?;
    round(digits, scale.checked_add(power)?.checked_add(3)?)
}

fn strip<'t, T: Copy>(text: &'t str, suffixes: &[(&str, T)]) -> Option<(&'t str, T)> {
    suffixes.iter().find_map(|(suffix, power)| Some((text.strip_suffix(suffix)?, *power)))
}

/// A decimal number as digits, and the power of ten that they are multiplied by.
fn digits(number: &str) -> Option<(i128, i32)> {
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
