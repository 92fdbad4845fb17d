//! Numbers in Go's format, which the Collector uses in labels and texts.

/// The shortest text that reads back as `value`, with an exponent from `10^exponent_from` on and below `10^-4`:
/// `%g` of Go has one from 6 on, `%v` from 21 on.
pub(crate) fn format_shortest(value: f64, exponent_from: i32) -> String {
    if !value.is_finite() {
        return format_not_finite(value).into();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..exponent_from).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn format_not_finite(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "+Inf",
        f64::NEG_INFINITY => "-Inf",
        _ => "NaN",
    }
}

#[cfg(test)]
mod tests;
