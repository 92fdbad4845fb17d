//! Suggestions for unknown words.

/// The limit of known words that are compared and shown; a person reads no more, and a hostile document may
/// define any number.
pub(crate) const MAX_SUGGESTED_WORDS: usize = 50;

/// Longer words are no typing errors, and comparing them would take long.
const MAX_WORD_BYTES: usize = 64;

/// The known word that is closest to `word`, if it is similar enough to be meant.
pub(crate) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.is_empty() || word.len() > MAX_WORD_BYTES {
        return None;
    }
    let word = word.to_ascii_lowercase();
    known
        .into_iter()
        .filter(|candidate| word.len().abs_diff(candidate.len()) <= max_distance(&word, candidate))
        .map(|candidate| (distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= max_distance(&word, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The distance up to which two words count as similar.
fn max_distance(a: &str, b: &str) -> usize {
    1.max(a.len().min(b.len()) / 3)
}

/// Help for an unknown word: the closest known word, and all known words after a label such as `known fields`.
pub(crate) fn help(word: &str, known: &[&str], label: &str) -> String {
    let mut sorted: Vec<&str> = known.iter().copied().filter(|word| !word.is_empty()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let more = if sorted.len() > MAX_SUGGESTED_WORDS { ", …" } else { "" };
    sorted.truncate(MAX_SUGGESTED_WORDS);
    let all = if sorted.is_empty() {
        format!("there are no {label}")
    } else {
        format!("{label}: {}{more}", sorted.join(", "))
    };
    match closest(word, sorted) {
        Some(meant) => format!("did you mean `{meant}`? {}", capital(&all)),
        None => all,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// The number of letters to add, remove, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}
