use super::*;

fn parse(text: &str) -> Result<StaticTokens, TokenFileError> {
    StaticTokens::parse("tokens.csv", text, Arc::new(["api".into()]))
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_file_says_whose_tokens_are_whose() {
    let tokens = parse("admintoken,admin,admin-uid,system:masters\r\n\nt2,jane,2,\"devs,ops\"\nt3,joe,3\n").unwrap();
    let groups = |token| tokens.user(token).unwrap().groups.join(" ");
    assert_eq!(groups("admintoken"), "system:masters system:authenticated");
    assert_eq!(groups("t2"), "devs ops system:authenticated");
    assert_eq!(groups("t3"), "system:authenticated");
    assert_eq!(&*tokens.user("t2").unwrap().uid, "2");
    assert!(tokens.user("wrong").is_none() && tokens.user("").is_none());
}

#[test]
fn quotes_hold_commas_quotes_and_line_breaks() {
    let tokens = parse("t,\"Jane \"\"J\"\", Doe\nII\",1").unwrap();
    assert_eq!(&*tokens.user("t").unwrap().name, "Jane \"J\", Doe\nII");
}

#[test]
fn empty_tokens_are_skipped_and_of_two_the_last_counts() {
    let tokens = parse(",nobody,1\nt,one,1\nt,two,2\n").unwrap();
    assert_eq!(tokens.by_digest.len(), 1);
    assert_eq!(&*tokens.user("t").unwrap().name, "two");
}

#[test]
fn errors_are_told_in_kube_apiservers_words_and_without_tokens() {
    let columns = "token file 'tokens.csv' must have at least 3 columns (token, user name, user uid), found 2";
    assert_eq!(message("secret,admin"), columns);
    assert_eq!(
        message("a,b,c\nse\"cret,b,c"),
        "token file 'tokens.csv': parse error on line 2: bare \" in non-quoted field"
    );
    assert!(message("a,\"b,c").ends_with("line 1: extraneous or missing \" in quoted-field"));
    assert!(message("a,\"b\"x,c").ends_with("line 1: extraneous or missing \" in quoted-field"));
}

#[test]
fn debug_shows_no_tokens() {
    assert_eq!(format!("{:?}", parse("secret,a,b").unwrap()), "StaticTokens(1)");
}
