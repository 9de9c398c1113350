//! From TOML to a plan, with the place of each mistake.

use std::path::Path;

use super::{Plan, PlanError, validate};

/// Largest plan file that is read, bytes. A plan is a page of text; anything larger is some other file.
const MAX_PLAN_BYTES: u64 = 1 << 20;

/// Reads a plan from a file.
///
/// # Errors
/// [`PlanError::Read`] when there is no such file, otherwise those of [`parse`].
pub fn load(path: &Path) -> Result<Plan, PlanError> {
    let failed = |source| PlanError::Read { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.len() > MAX_PLAN_BYTES {
        let reason = format!("larger than {MAX_PLAN_BYTES} bytes, so not a plan");
        return Err(failed(std::io::Error::new(std::io::ErrorKind::InvalidData, reason)));
    }
    parse(&path.display().to_string(), &std::fs::read_to_string(path).map_err(failed)?)
}

/// Reads a plan from text; `file` names it in errors.
///
/// # Errors
/// [`PlanError::Malformed`] names the line and the field that is missing, unknown or of the wrong form; [`PlanError::Impossible`] the field that makes the
/// world or a check contradict itself.
pub fn parse(file: &str, text: &str) -> Result<Plan, PlanError> {
    let malformed = |error: &toml::de::Error, field: String| PlanError::Malformed {
        file: file.to_owned(),
        line: error.span().map_or(1, |span| line_of(text, span.start)),
        field,
        reason: error.message().to_owned(),
    };
    let deserializer = toml::Deserializer::parse(text).map_err(|error| malformed(&error, "(syntax)".to_owned()))?;
    let plan: Plan = serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let field = error.path().to_string();
        malformed(error.inner(), if field == "." { "(plan)".to_owned() } else { field })
    })?;
    validate::check(&plan).map_err(|impossible| match line_of_field(text, &impossible.field) {
        Some(line) => {
            PlanError::Malformed { file: file.to_owned(), line, field: impossible.field, reason: impossible.reason }
        }
        None => PlanError::Impossible { file: file.to_owned(), field: impossible.field, reason: impossible.reason },
    })?;
    Ok(plan)
}

/// The line, from 1, of a byte of the text.
fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|&byte| byte == b'\n').count()
}

/// The line of a field that was read well but means nonsense: found again by its path.
fn line_of_field(text: &str, field: &str) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut found = None;
    let mut table = document.get_ref();
    for step in field.split('.') {
        let (key, index) = match step.split_once('[') {
            Some((key, rest)) => (key, rest.strip_suffix(']')?.parse::<usize>().ok()),
            None => (step, None),
        };
        let Some((key, mut value)) = table.iter().find(|(name, _)| name.get_ref() == key) else { break };
        let mut span = key.span();
        if let (Some(index), Some(array)) = (index, value.get_ref().as_array()) {
            value = array.get(index)?;
            span = value.span();
        }
        found = Some(line_of(text, span.start));
        match value.get_ref().as_table() {
            Some(inner) => table = inner,
            None => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"name = "two"
scenario = "A0"
part = "B"
about = "Two peers, one slow."

[[world.peers]]
name = "fast"
rate = 1e6
rtt_ms = 50

[[world.peers]]
name = "slow"
rate = [1e4, 2e4]
rtt_ms = 50

[workload.downloads]
requests = 1
ranges = 8
range_bytes = 1048576
sources = 2
in_flight = 4

[[checks]]
what = "bytes_share"
group = "slow"
at_most = 0.1
"#;

    fn place(text: &str) -> (usize, String, String) {
        match parse("two.toml", text) {
            Err(PlanError::Malformed { line, field, reason, .. }) => (line, field, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_plan_is_read_whole() {
        let plan = parse("two.toml", PLAN).unwrap();
        assert_eq!((plan.world.peers.len(), plan.checks.len()), (2, 1));
    }

    #[test]
    fn a_malformed_plan_names_file_line_and_field() {
        let cases = [
            ("rate = 1e6", "rate = \"quick\"", 8, "world.peers[0].rate"),
            ("rtt_ms = 50\n\n[w", "rtt = 50\n\n[w", 14, "world.peers[1].rtt"),
            ("ranges = 8", "ranges = -8", 18, "workload.downloads.ranges"),
            ("part = \"B\"", "part = \"Q\"", 3, "part"),
            ("what = \"bytes_share\"", "what = \"beauty\"", 24, "checks[0].what"),
        ];
        for (old, new, line, field) in cases {
            let (found, path, reason) = place(&PLAN.replacen(old, new, 1));
            assert_eq!((found, path.as_str()), (line, field), "{new}: {reason}");
        }
        let shown = parse("two.toml", &PLAN.replace("rate = 1e6", "rate = true")).unwrap_err().to_string();
        assert!(shown.starts_with("two.toml:8: field `world.peers[0].rate`"), "{shown}");
    }

    #[test]
    fn an_impossible_world_is_refused_with_the_reason_at_its_line() {
        let cases = [
            ("rate = 1e6", "rate = 0", 8, "world.peers[0].rate"),
            ("rate = [1e4, 2e4]", "rate = [2e4, 1e4]", 13, "world.peers[1].rate"),
            ("group = \"slow\"", "group = \"sluggish\"", 25, "checks[0].group"),
            ("at_most = 0.1", "at_most = nan", 26, "checks[0].at_most"),
        ];
        for (old, new, line, field) in cases {
            let (found, path, reason) = place(&PLAN.replacen(old, new, 1));
            assert_eq!((found, path.as_str()), (line, field), "{new}: {reason}");
        }
    }

    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        assert_eq!(place("name = \"x\"\nwhat is this").0, 2);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load(Path::new("/nowhere/such.toml")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/such.toml"), "{error}");
    }
}
