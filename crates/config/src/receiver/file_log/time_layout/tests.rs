use super::{LayoutPart::*, NumberField::*, *};

fn number(field: NumberField, two_digits: bool) -> LayoutPart {
    Number { field, two_digits }
}

fn literal(text: &str) -> LayoutPart {
    Literal(text.into())
}

#[test]
fn layout_of_strptime_has_a_part_for_each_directive() {
    let parts = strptime::parse("%Y-%m-%dT%H:%M:%S.%L%z").unwrap();
    let expected = vec![
        Year,
        literal("-"),
        number(Month, false),
        literal("-"),
        number(Day, false),
        literal("T"),
        number(Hour, false),
        literal(":"),
        number(Minute, false),
        literal(":"),
        number(Second, false),
        Fraction,
        Offset(OffsetForm { accepts_z: true, digits: OffsetDigits::Any }),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn directive_that_is_short_for_others_is_replaced_by_them() {
    assert_eq!(strptime::parse("at %R"), strptime::parse("at %H:%M"));
    assert_eq!(strptime::parse("%D").unwrap().last(), Some(&YearOfAnyLength));
}

#[test]
fn layout_with_digits_unknown_directives_or_a_fraction_without_separator_is_refused() {
    for (layout, word) in [("%Y-01", "digits"), ("%Q", "%Q"), ("%S%L", "%L"), ("%", "last %"), ("%f", "%f")] {
        assert!(strptime::parse(layout).unwrap_err().contains(word), "{layout}");
    }
}

#[test]
fn layout_of_go_is_read_as_go_reads_it() {
    let parts = go::parse("Mon Jan _2 15:04:05.999 MST 2006").unwrap();
    let expected = vec![
        ShortWeekdayName,
        literal(" "),
        ShortMonthName,
        literal(" "),
        PaddedDay,
        literal(" "),
        number(Hour, false),
        literal(":"),
        number(Minute, true),
        literal(":"),
        number(Second, true),
        Fraction,
        literal(" "),
        ZoneName,
        literal(" "),
        Year,
    ];
    assert_eq!(parts, expected);
    assert_eq!(go::parse("Month").unwrap(), vec![literal("Month")]);
    assert_eq!(go::parse("05,000").unwrap(), vec![number(Second, true), FixedFraction(3)]);
    assert_eq!(
        go::parse("Z07:00").unwrap(),
        vec![Offset(OffsetForm { accepts_z: true, digits: OffsetDigits::ColonMinutes })]
    );
    assert_eq!(go::parse("_2006").unwrap(), vec![literal("_"), Year]);
}

#[test]
fn fraction_of_go_without_separator_is_refused() {
    assert!(go::parse("05 x999").unwrap_err().contains("point or a comma"));
}
