//! Validates cron schedules, with the messages of kube-apiserver's parser.

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The bounds of one of the five fields: the smallest and largest number, and the names of the first numbers.
struct CronFieldBounds {
    min: i64,
    max: i64,
    names: &'static [&'static str],
}

const FIELDS: [CronFieldBounds; 5] = [
    CronFieldBounds { min: 0, max: 59, names: &[] },
    CronFieldBounds { min: 0, max: 23, names: &[] },
    CronFieldBounds { min: 1, max: 31, names: &[] },
    CronFieldBounds { min: 1, max: 12, names: &MONTHS },
    CronFieldBounds { min: 0, max: 6, names: &DAYS },
];

/// Removes a leading `TZ=…` or `CRON_TZ=…`; returns whether there was one.
pub(crate) fn split_zone(schedule: &str) -> (bool, &str) {
    if !schedule.starts_with("TZ=") && !schedule.starts_with("CRON_TZ=") {
        return (false, schedule);
    }
    (true, schedule.split_once(' ').map_or("", |(_, rest)| rest.trim()))
}

pub(crate) fn check(schedule: &str) -> Result<(), String> {
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(text, bounds)| text.split(',').try_for_each(|range| bounds.range(range)))
}

fn descriptor(schedule: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&schedule) {
        return Ok(());
    }
    let Some(every) = schedule.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {schedule}"));
    };
    let good = !every.is_empty()
        && every.starts_with(|first: char| first.is_ascii_digit())
        && every.ends_with(|last: char| last.is_ascii_alphabetic());
    if good { Ok(()) } else { Err(format!("failed to parse duration {schedule}: time: invalid duration {every:?}")) }
}

impl CronFieldBounds {
    fn range(&self, range: &str) -> Result<(), String> {
        let parts: Vec<&str> = range.split('/').collect();
        let (ends, step) = match parts.as_slice() {
            [ends] => (*ends, None),
            [ends, step] => (*ends, Some(number(step)?)),
            _ => return Err(format!("too many slashes: {range}")),
        };
        let (start, end) = self.ends(ends, range, step.is_some())?;
        if start < self.min {
            return Err(format!("beginning of range ({start}) below minimum ({}): {range}", self.min));
        }
        if end > self.max {
            return Err(format!("end of range ({end}) above maximum ({}): {range}", self.max));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
        }
        if step == Some(0) {
            return Err(format!("step of range should be a positive number: {range}"));
        }
        Ok(())
    }

    /// A single number with a step is the start of a range.
    fn ends(&self, ends: &str, range: &str, stepped: bool) -> Result<(i64, i64), String> {
        if ends == "*" || ends == "?" {
            return Ok((self.min, self.max));
        }
        match ends.split('-').collect::<Vec<_>>().as_slice() {
            [one] => {
                let start = self.value(one)?;
                Ok((start, if stepped { self.max } else { start }))
            }
            [low, high] => Ok((self.value(low)?, self.value(high)?)),
            _ => Err(format!("too many hyphens: {range}")),
        }
    }

    fn value(&self, text: &str) -> Result<i64, String> {
        let name = text.to_lowercase();
        match self.names.iter().position(|known| *known == name) {
            Some(index) => Ok(self.min + i64::try_from(index).unwrap_or(0)),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Result<i64, String> {
    match text.parse::<i32>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(i64::from(number)),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}
