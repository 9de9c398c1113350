//! The page in a real browser, where there is one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::plan::parse;
use crate::report::testing::{PLAN, Toy};
use crate::report::{Selection, run};

use super::page;

fn toy_page() -> String {
    page(&run(&Toy, &[parse("toy.toml", PLAN).unwrap()], &Selection::default(), &|_| ()).unwrap())
}

/// Debian's browser, or a notice that the test has nothing to look with.
fn browser() -> Option<&'static Path> {
    let found =
        ["/usr/bin/chromium", "/usr/bin/chromium-browser"].into_iter().map(Path::new).find(|path| path.exists());
    if found.is_none() {
        println!("NOTICE: skipped, there is no /usr/bin/chromium to open the page in");
    }
    found
}

/// What the browser makes of the page at a width: the text that `probe`, a JavaScript expression, evaluates to.
fn probe(browser: &Path, width: u32, extra: &[&str], probe: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("report.html");
    // The window of a headless browser has a least width; a frame has none.
    let frame = format!(
        "<!doctype html><iframe id=f src=page.html scrolling=no style=\"width:{width}px;height:900px;border:0\"></iframe><pre id=found></pre>\
         <script>onload=()=>{{const w=document.getElementById('f').contentWindow,d=w.document;\
         document.getElementById('found').textContent='['+({probe})+']'}}</script>"
    );
    std::fs::write(folder.path().join("page.html"), toy_page()).unwrap();
    std::fs::write(&path, frame).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--allow-file-access-from-files",
        ])
        .args(["--no-first-run", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(extra)
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", path.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let found = dom.split_once("<pre id=\"found\">[").and_then(|(_, rest)| rest.split_once("]</pre>"));
    match found {
        Some((found, _)) => found.to_owned(),
        None => panic!("the browser said nothing: {dom}\n{}", String::from_utf8_lossy(&output.stderr)),
    }
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let html = toy_page();
    for outside in ["<script", "<link", "<img", "src=", "url(", "@import", "http:", "https:"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("the bad one is &lt;left&gt; alone"), "text of plans is escaped");
}

#[test]
fn the_page_is_the_same_for_the_same_results() {
    assert_eq!(toy_page(), toy_page());
}

#[test]
fn a_browser_shows_every_part_of_the_page() {
    let Some(browser) = browser() else { return };
    let parts = "['section','section > .scroll tbody tr','svg','.checks li'].map(s=>d.querySelectorAll(s).length)";
    // Three policies; their distribution, our shares and standing, and two others' shares; six checks.
    assert_eq!(probe(browser, 1200, &[], parts), "1,3,5,6");
}

#[test]
fn a_phone_shows_the_page_without_scrolling_sideways() {
    let Some(browser) = browser() else { return };
    for width in [320, 360, 412] {
        let widths = "[d.documentElement.scrollWidth<=d.documentElement.clientWidth,d.documentElement.clientWidth]";
        assert_eq!(probe(browser, width, &[], widths), format!("true,{width}"));
    }
    let letters =
        "Math.min(...[...d.querySelectorAll('section > .plots svg text')].map(t=>t.getBoundingClientRect().height))>=9";
    assert_eq!(probe(browser, 360, &[], letters), "true", "letters of plots stay legible");
}

#[test]
fn the_page_is_light_or_dark_as_the_reader_wants_and_legible_in_both() {
    let Some(browser) = browser() else { return };
    let contrast = "(()=>{const l=c=>{const v=c.match(/[\\d.]+/g).slice(0,3).map(x=>{x/=255;return x<=.03928?x/12.92:((x+.055)/1.055)**2.4});\
        return .2126*v[0]+.7152*v[1]+.0722*v[2]};const r=(a,b)=>(Math.max(a,b)+.05)/(Math.min(a,b)+.05);\
        const s=e=>w.getComputedStyle(e),g=l(s(d.body).backgroundColor);\
        return [g>.5?'light':'dark',r(l(s(d.body).color),g)>=7,r(l(s(d.querySelector('figcaption')).color),g)>=4.5,\
        r(l(s(d.querySelector('a')).color),g)>=4.5,[...d.querySelectorAll('.key')].every(k=>r(l(s(k).backgroundColor),g)>=3)]})()";
    assert_eq!(probe(browser, 1200, &[], contrast), "light,true,true,true,true");
    assert_eq!(
        probe(browser, 1200, &["--blink-settings=preferredColorScheme=0"], contrast),
        "dark,true,true,true,true"
    );
}
