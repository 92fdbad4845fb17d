//! Texts of strangers, made safe and made to fit.

use std::path::Path;

use console::{measure_text_width, truncate_str};

/// A text in which nothing moves the cursor, changes colours, or turns the direction of writing: what would is shown as Rust escapes it.
pub(crate) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmless(c) {
            true => safe.push(c),
            false => safe.extend(c.escape_default()),
        }
    }
    safe
}

/// Neither a control character nor one that has no width and changes how its neighbours are shown.
fn is_harmless(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !is_format
}

/// The text in so many columns, filled up or cut.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let cut = cut(text, width);
    let missing = width.saturating_sub(measure_text_width(&cut));
    cut + &" ".repeat(missing)
}

/// The text in at most so many columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match width {
        0 => String::new(),
        width => truncate_str(text, width, "…").into_owned(),
    }
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// A path as a shell takes it for one word.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_would_move_it() {
        assert_eq!(safe("GET /a b"), "GET /a b");
        assert_eq!(safe("\u{1b}[2Jgone"), "\\u{1b}[2Jgone");
        assert_eq!(safe("a\r\nb\tc\u{7}"), "a\\r\\nb\\tc\\u{7}");
        assert_eq!(safe("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c", "neither right to left nor eight bits");
        assert_eq!(safe("größer 日本 ✓"), "größer 日本 ✓");
    }

    #[test]
    fn what_does_not_fit_is_cut_and_what_is_short_is_filled() {
        assert_eq!(fit("abc", 5), "abc  ");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(width(&fit("日本語", 4)), 4);
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(quoted(Path::new("/home/me/up-2/kubeconfig")), "/home/me/up-2/kubeconfig");
        assert_eq!(quoted(Path::new("/my data/it's")), r"'/my data/it'\''s'");
    }
}
