//! Times in RFC 3339.

/// Seconds since 1970 and nanoseconds as text, without trailing zeroes. `None` outside of the years 1 to 9999.
pub(super) fn rfc3339(seconds: i64, nanoseconds: u32) -> Option<String> {
    let days = seconds.div_euclid(86_400);
    let second = seconds.rem_euclid(86_400);
    let (year, month, day) = date(days).filter(|(year, ..)| (1..=9999).contains(year))?;
    let hour = second / 3600;
    let minute = second / 60 % 60;
    let second = second % 60;
    let fraction = match nanoseconds {
        0 => String::new(),
        1..1_000_000_000 => format!(".{nanoseconds:09}").trim_end_matches('0').to_owned(),
        _ => return None,
    };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// The date of a day, counted from 1970. Years begin in March here, so that the leap day is the last of its
/// year.
fn date(days: i64) -> Option<(i64, i64, i64)> {
    let days = days.checked_add(719_468)?;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = year_of_era + era * 400;
    Some(if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) })
}
