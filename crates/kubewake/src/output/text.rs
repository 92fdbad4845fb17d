//! Sanitizes untrusted text, and fits text into columns.

use std::path::Path;

use console::{measure_text_width, truncate_str};

/// Escapes everything that would move the cursor, change colours, or change the direction of writing, in Rust's
/// notation.
pub(crate) fn sanitize(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) { safe.push(c) } else { safe.extend(c.escape_default()) }
    }
    safe
}

/// Neither a control character nor an invisible one that affects its neighbours.
fn is_harmless(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !is_format
}

/// Pads or truncates a text to this number of columns.
pub(crate) fn pad_or_truncate(text: &str, width: usize) -> String {
    let cut = truncate(text, width);
    let missing = width.saturating_sub(measure_text_width(&cut));
    cut + &" ".repeat(missing)
}

/// Truncates a text to this number of columns.
pub(crate) fn truncate(text: &str, width: usize) -> String {
    match width {
        0 => String::new(),
        width => truncate_str(text, width, "…").into_owned(),
    }
}

/// The number of columns that a text takes.
pub(crate) fn display_width(text: &str) -> usize {
    measure_text_width(text)
}

/// A path as one word of a shell.
pub(crate) fn shell_quote(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_would_move_it() {
        assert_eq!(sanitize("GET /a b"), "GET /a b");
        assert_eq!(sanitize("\u{1b}[2Jgone"), "\\u{1b}[2Jgone");
        assert_eq!(sanitize("a\r\nb\tc\u{7}"), "a\\r\\nb\\tc\\u{7}");
        assert_eq!(sanitize("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c", "neither right to left nor eight bits");
        assert_eq!(sanitize("größer 日本 ✓"), "größer 日本 ✓");
    }

    #[test]
    fn what_does_not_fit_is_cut_and_what_is_short_is_filled() {
        assert_eq!(pad_or_truncate("abc", 5), "abc  ");
        assert_eq!(pad_or_truncate("abcdef", 4), "abc…");
        assert_eq!(pad_or_truncate("日本語", 5), "日本…");
        assert_eq!(display_width(&pad_or_truncate("日本語", 4)), 4);
        assert_eq!(pad_or_truncate("abc", 0), "");
    }

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(shell_quote(Path::new("/home/me/up-2/kubeconfig")), "/home/me/up-2/kubeconfig");
        assert_eq!(shell_quote(Path::new("/my data/it's")), r"'/my data/it'\''s'");
    }
}
