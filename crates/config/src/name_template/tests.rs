use proptest::prelude::*;

use super::*;

fn text(text: &str) -> NamePiece {
    NamePiece::Text(text.into())
}

fn attribute(key: &str, default: Option<&str>) -> NamePiece {
    NamePiece::Attribute { key: key.into(), default: default.map(str::to_owned) }
}

#[test]
fn template_has_texts_attributes_and_dates() {
    let date = NamePiece::Date(DateFormat::parse("yyyy.MM.dd").unwrap());
    let cases = [
        ("", vec![]),
        ("plain", vec![text("plain")]),
        ("100%%-%{a}", vec![text("100%-"), attribute("a", None)]),
        ("%{a.b:-none}%{c}", vec![attribute("a.b", Some("none")), attribute("c", None)]),
        ("%{a:-}", vec![attribute("a", Some(""))]),
        ("logs-%{+yyyy.MM.dd}", vec![text("logs-"), date]),
        ("a}b{", vec![text("a}b{")]),
    ];
    for (template, pieces) in cases {
        let parsed = NameTemplate::parse(template).unwrap();
        assert_eq!(parsed.pieces(), pieces, "{template}");
        assert_eq!(parsed.to_string(), template);
    }
}

#[test]
fn text_that_is_no_template_is_refused_with_the_reason() {
    let cases = [
        ("%{a", NameTemplateError::Unclosed),
        ("50%", NameTemplateError::LonePercent),
        ("%a", NameTemplateError::LonePercent),
        ("%{}", NameTemplateError::NoAttribute),
        ("%{:-x}", NameTemplateError::NoAttribute),
        ("%{+}", NameTemplateError::Date),
        ("%{+yy}", NameTemplateError::Date),
        ("%{+yyyy/MM}", NameTemplateError::Date),
    ];
    for (template, error) in cases {
        assert_eq!(NameTemplate::parse(template), Err(error), "{template}");
    }
}

#[test]
fn date_has_its_parts_in_order() {
    use DatePart::{Day, Hour, Month, Separator, Year};
    let format = DateFormat::parse("yyyyMM-dd_HH").unwrap();
    assert_eq!(format.parts(), [Year, Month, Separator('-'), Day, Separator('_'), Hour]);
}

#[test]
fn only_a_template_without_placeholders_is_a_text() {
    assert_eq!(NameTemplate::parse("50%%").unwrap().as_text(), Some("50%"));
    assert_eq!(NameTemplate::parse("%{a}").unwrap().as_text(), None);
    assert!(NameTemplate::parse("%{+yyyy}").unwrap().has_date());
    assert_eq!(NameTemplate::parse("%{a}-%{b}").unwrap().attribute_keys().collect::<Vec<_>>(), ["a", "b"]);
}

proptest! {
    #[test]
    fn any_text_is_a_template_or_an_error(text in ".{0,64}") {
        if let Ok(template) = NameTemplate::parse(&text) {
            prop_assert_eq!(NameTemplate::parse(&template.to_string()), Ok(template));
        }
    }

    #[test]
    fn any_text_with_doubled_percent_signs_stands_for_itself(text in ".{0,64}") {
        let template = NameTemplate::parse(&text.replace('%', "%%")).unwrap();
        prop_assert_eq!(template.as_text(), Some(text.as_str()));
    }
}
