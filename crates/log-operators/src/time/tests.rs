use kubewake_config::file_log::time_layout::{LayoutPart, NumberField, OffsetDigits, OffsetForm};
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
/// 2023-11-14T22:13:20Z
const NOVEMBER: u64 = 1_700_000_000 * SECOND;

fn number(field: NumberField) -> LayoutPart {
    LayoutPart::Number { field, two_digits: false }
}

fn literal(text: &str) -> LayoutPart {
    LayoutPart::Literal(text.into())
}

fn date_and_time(between: &str) -> Vec<LayoutPart> {
    use NumberField::{Day, Hour, Minute, Month, Second};
    vec![
        LayoutPart::Year,
        literal("-"),
        number(Month),
        literal("-"),
        number(Day),
        literal(between),
        number(Hour),
        literal(":"),
        number(Minute),
        literal(":"),
        number(Second),
    ]
}

fn reader(parts: Vec<LayoutPart>, location: Option<&str>) -> TimeReader {
    let form = TimeForm::Parts { parts, skips_space: true };
    TimeReader::new(&TimeLayout { text: String::new(), form, location: location.map(str::to_owned) })
}

fn read(reader: &TimeReader, text: &str) -> Result<u64, String> {
    reader.read(&text.into(), NOVEMBER).map_err(|error| error.to_string())
}

#[test]
fn time_with_date_is_utc_or_in_its_location() {
    let utc = reader(date_and_time(" "), None);
    assert_eq!(read(&utc, "2023-11-14 22:13:20"), Ok(NOVEMBER));
    assert_eq!(read(&utc, "2023-11-14   22:13:20.5"), Ok(NOVEMBER + SECOND / 2));
    let berlin = reader(date_and_time(" "), Some("Europe/Berlin"));
    assert_eq!(read(&berlin, "2023-07-01 12:00:00"), Ok(1_688_205_600 * SECOND));
}

#[test]
fn offset_is_written_in_any_form() {
    let mut parts = date_and_time("T");
    parts.push(LayoutPart::Offset(OffsetForm { accepts_z: true, digits: OffsetDigits::Any }));
    let reader = reader(parts, Some("Europe/Berlin"));
    for text in
        ["2023-11-14T22:13:20Z", "2023-11-15T00:13:20+0200", "2023-11-15T00:13:20+02:00", "2023-11-14T20:13:20-02"]
    {
        assert_eq!(read(&reader, text), Ok(NOVEMBER), "{text}");
    }
    for text in
        ["2023-11-15T00:13:20", "2023-11-15T00:13:20+2", "2023-11-15T00:13:20+02:00x", "2023-11-15T00:13:20+0260"]
    {
        assert!(read(&reader, text).is_err(), "{text}");
    }
}

#[test]
fn names_of_months_half_days_and_zones_are_known() {
    use NumberField::{Day, HalfDayHour, Minute};
    let parts = vec![
        LayoutPart::ShortWeekdayName,
        literal(" "),
        LayoutPart::ShortMonthName,
        literal(" "),
        number(Day),
        literal(" "),
        number(HalfDayHour),
        literal(":"),
        number(Minute),
        LayoutPart::Meridiem { upper_case: true },
        literal(" "),
        LayoutPart::ZoneName,
        literal(" "),
        LayoutPart::YearOfAnyLength,
    ];
    let reader = reader(parts, Some("Europe/Berlin"));
    let minute = 1_699_999_980 * SECOND;
    assert_eq!(read(&reader, "Tue nov 14 10:13PM UTC 2023"), Ok(minute));
    assert_eq!(read(&reader, "TUE NOV 14 11:13PM CET 23"), Ok(minute));
    assert_eq!(read(&reader, "Tue Nov 14 05:13PM EST 2023"), Ok(minute));
    assert!(read(&reader, "Tue Nov 14 05:13PM XYZ 2023").unwrap_err().contains("XYZ"));
    assert!(read(&reader, "Tue Nov 14 13:13PM UTC 2023").is_err());
}

#[test]
fn time_without_year_is_at_most_a_week_ahead() {
    let parts = vec![LayoutPart::ShortMonthName, literal(" "), LayoutPart::PaddedDay];
    let reader = reader(parts, None);
    let day = 86_400 * SECOND;
    let today = NOVEMBER / day * day;
    assert_eq!(read(&reader, "Nov 14"), Ok(today));
    assert_eq!(read(&reader, "Nov 20"), Ok(today + 6 * day));
    assert_eq!(read(&reader, "Nov 24"), Ok(today + 10 * day - 365 * day));
    assert_eq!(read(&reader, "Jan  5"), Ok(today - 313 * day));
}

#[test]
fn days_that_do_not_exist_are_errors() {
    let reader = reader(date_and_time(" "), None);
    for text in
        ["2023-02-29 00:00:00", "2023-13-01 00:00:00", "2023-01-01 24:00:00", "1960-01-01 00:00:00", "yesterday", ""]
    {
        assert!(read(&reader, text).is_err(), "{text}");
    }
}

#[test]
fn number_since_1970_may_be_a_number_or_a_text() {
    let epoch = |unit: EpochUnit, value: LogValue| {
        let layout = TimeLayout { text: String::new(), form: TimeForm::Epoch(unit), location: None };
        TimeReader::new(&layout).read(&value, 0).map_err(|error| error.to_string())
    };
    let with_nanoseconds = 1_700_000_000_123_456_789;
    assert_eq!(epoch(EpochUnit::Seconds, LogValue::Int(1_700_000_000)), Ok(NOVEMBER));
    assert_eq!(epoch(EpochUnit::Milliseconds, LogValue::Double(1_700_000_000_000.9)), Ok(NOVEMBER));
    assert_eq!(epoch(EpochUnit::Nanoseconds, "1700000000123456789".into()), Ok(with_nanoseconds));
    assert_eq!(epoch(EpochUnit::SecondsNanoseconds, "1700000000.123456789".into()), Ok(with_nanoseconds));
    assert_eq!(epoch(EpochUnit::SecondsMilliseconds, LogValue::Double(1_700_000_000.5)), Ok(NOVEMBER + SECOND / 2));
    assert_eq!(epoch(EpochUnit::SecondsMicroseconds, LogValue::Int(1_700_000_000)), Ok(NOVEMBER));
    assert!(epoch(EpochUnit::Seconds, "1.5".into()).is_err());
    assert!(epoch(EpochUnit::SecondsMilliseconds, "17".into()).is_err());
    assert!(epoch(EpochUnit::Seconds, LogValue::Int(-1)).is_err());
    assert!(epoch(EpochUnit::Seconds, LogValue::Bool(true)).is_err());
}

proptest! {
    #[test]
    fn time_that_is_written_is_read_again(seconds in 0_u64..4_000_000_000, nanosecond in 0_u64..SECOND) {
        let time = seconds * SECOND + nanosecond;
        let text = Timestamp::from_nanosecond(time.into()).unwrap().to_string();
        let mut parts = date_and_time("T");
        parts.push(LayoutPart::Offset(OffsetForm { accepts_z: true, digits: OffsetDigits::ColonMinutes }));
        prop_assert_eq!(read(&reader(parts, None), &text), Ok(time));
    }

    #[test]
    fn any_text_is_a_time_or_an_error(text in "[0-9 :.T+-]{0,30}") {
        let _ = read(&reader(date_and_time("T"), None), &text);
    }
}
