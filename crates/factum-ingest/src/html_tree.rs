//! Which elements of a page are open.
//!
//! A simplified form of the standard's stack of open elements: enough to know what is hidden, what is
//! preformatted, and where blocks begin and end, in pages with missing and crossed end tags. Every
//! start and end tag costs constant time on average, however deep a page is nested. Knows no text.

use std::collections::BTreeMap;

/// What an element does to the text around and in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Part of a line.
    Inline,
    /// Starts a line of its own.
    Line,
    /// Stands apart by a blank line.
    Paragraph,
    Table,
    Row,
    Cell,
}

/// Why an element's content is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// Never shown, like a script.
    Machinery,
    /// Text that this page chooses not to show.
    Hidden,
}

/// An open element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    name: u32,
    pub(crate) role: Role,
    /// Neither it nor anything around it is unseen.
    pub(crate) shown: bool,
    unseen: Option<Unseen>,
    preformatted: bool,
    /// Closed by a crossed end tag, while elements within are still open.
    gone: bool,
}

/// Where open elements of interest are in the stack.
type Places = Vec<u32>;

/// Names that rules ask for, with their numbers.
mod known {
    pub(super) const TABLE: u32 = 0;
    pub(super) const TD: u32 = 1;
    pub(super) const TH: u32 = 2;
    pub(super) const TR: u32 = 3;
    pub(super) const TBODY: u32 = 4;
    pub(super) const THEAD: u32 = 5;
    pub(super) const TFOOT: u32 = 6;
    pub(super) const CAPTION: u32 = 7;
    pub(super) const P: u32 = 8;
    pub(super) const LI: u32 = 9;
    pub(super) const UL: u32 = 10;
    pub(super) const OL: u32 = 11;
    pub(super) const DT: u32 = 12;
    pub(super) const DD: u32 = 13;
    pub(super) const DL: u32 = 14;
    pub(super) const OPTION: u32 = 15;
    pub(super) const SELECT: u32 = 16;
    pub(super) const BUTTON: u32 = 17;
    pub(super) const SVG: u32 = 18;
    pub(super) const MATH: u32 = 19;
    pub(super) const FOREIGN_OBJECT: u32 = 20;

    /// By number, then the other inline elements that are common.
    pub(super) const NAMES: &[&[u8]] = &[
        b"table",
        b"td",
        b"th",
        b"tr",
        b"tbody",
        b"thead",
        b"tfoot",
        b"caption",
        b"p",
        b"li",
        b"ul",
        b"ol",
        b"dt",
        b"dd",
        b"dl",
        b"option",
        b"select",
        b"button",
        b"svg",
        b"math",
        b"foreignobject",
        b"a",
        b"abbr",
        b"b",
        b"bdi",
        b"bdo",
        b"big",
        b"cite",
        b"code",
        b"del",
        b"dfn",
        b"em",
        b"font",
        b"i",
        b"ins",
        b"kbd",
        b"label",
        b"mark",
        b"nobr",
        b"object",
        b"q",
        b"rp",
        b"rt",
        b"ruby",
        b"s",
        b"samp",
        b"small",
        b"span",
        b"strike",
        b"strong",
        b"sub",
        b"sup",
        b"time",
        b"tt",
        b"u",
        b"var",
        b"html",
        b"body",
        b"marquee",
        b"applet",
    ];
}

#[derive(Debug)]
pub(crate) struct Tree {
    open: Vec<Open>,
    names: BTreeMap<Vec<u8>, u32>,
    /// By name.
    places: Vec<Places>,
    /// Elements that inline end tags do not reach across.
    blocks: Places,
    /// Elements that no end tag but a table's reaches across.
    scopes: Places,
    unseen: u32,
    hidden: u32,
    preformatted: u32,
}

/// Elements that never have content.
pub(crate) fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area"
            | b"base"
            | b"br"
            | b"col"
            | b"embed"
            | b"hr"
            | b"img"
            | b"input"
            | b"link"
            | b"meta"
            | b"param"
            | b"source"
            | b"track"
            | b"wbr"
            | b"frame"
            | b"keygen"
    )
}

/// Elements whose content a browser never shows.
pub(crate) fn is_machinery(name: &[u8]) -> bool {
    matches!(
        name,
        b"script"
            | b"style"
            | b"template"
            | b"title"
            | b"iframe"
            | b"noembed"
            | b"noframes"
            | b"datalist"
            | b"desc"
            | b"metadata"
            | b"annotation"
            | b"annotation-xml"
    )
}

pub(crate) fn is_preformatted(name: &[u8]) -> bool {
    matches!(
        name,
        b"pre" | b"textarea" | b"listing" | b"xmp" | b"plaintext"
    )
}

pub(crate) fn role(name: &[u8]) -> Role {
    match name {
        b"p" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"blockquote" | b"pre" | b"ul"
        | b"ol" | b"dl" | b"hr" | b"figure" | b"fieldset" | b"section" | b"article" | b"aside"
        | b"xmp" | b"listing" | b"plaintext" | b"textarea" => Role::Paragraph,
        b"html" | b"body" | b"div" | b"li" | b"dt" | b"dd" | b"caption" | b"option"
        | b"optgroup" | b"legend" | b"summary" | b"details" | b"dialog" | b"form" | b"header"
        | b"footer" | b"main" | b"nav" | b"address" | b"center" | b"figcaption" | b"menu"
        | b"dir" | b"hgroup" | b"search" | b"thead" | b"tbody" | b"tfoot" | b"select"
        | b"frameset" | b"noscript" => Role::Line,
        b"table" => Role::Table,
        b"tr" => Role::Row,
        b"td" | b"th" => Role::Cell,
        _ => Role::Inline,
    }
}

fn is_scope(name: &[u8]) -> bool {
    matches!(
        name,
        b"html"
            | b"table"
            | b"td"
            | b"th"
            | b"caption"
            | b"template"
            | b"object"
            | b"marquee"
            | b"applet"
            | b"foreignobject"
    )
}

/// End tags of these take effect even where they cross a block.
fn is_formatting(name: &[u8]) -> bool {
    matches!(
        name,
        b"a" | b"b"
            | b"big"
            | b"code"
            | b"em"
            | b"font"
            | b"i"
            | b"nobr"
            | b"s"
            | b"small"
            | b"strike"
            | b"strong"
            | b"tt"
            | b"u"
    )
}

impl Tree {
    pub(crate) fn new() -> Self {
        let names: BTreeMap<_, _> = (0u32..)
            .zip(known::NAMES)
            .map(|(number, name)| (name.to_vec(), number))
            .collect();
        Self {
            open: Vec::new(),
            places: vec![Vec::new(); known::NAMES.len()],
            names,
            blocks: Vec::new(),
            scopes: Vec::new(),
            unseen: 0,
            hidden: 0,
            preformatted: 0,
        }
    }

    pub(crate) fn is_unseen(&self) -> bool {
        self.unseen > 0
    }

    /// Within a hidden element; script in a hidden element is no hidden text.
    pub(crate) fn is_hidden_text(&self) -> bool {
        self.hidden > 0 && self.unseen == self.hidden
    }

    pub(crate) fn hidden_depth(&self) -> u32 {
        self.hidden
    }

    pub(crate) fn is_preformatted(&self) -> bool {
        self.preformatted > 0
    }

    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Within SVG or MathML, where `/>` closes an element.
    pub(crate) fn is_foreign(&self) -> bool {
        let foreign = self.last(known::SVG).max(self.last(known::MATH));
        foreign.is_some() && foreign > self.last(known::FOREIGN_OBJECT)
    }

    /// Within a list item.
    pub(crate) fn is_in_item(&self) -> bool {
        self.last(known::LI).is_some()
    }

    /// The innermost open element of a name, by the name's number.
    fn last(&self, number: u32) -> Option<u32> {
        self.places.get(number as usize)?.last().copied()
    }

    fn last_named(&self, name: &[u8]) -> Option<u32> {
        self.last(*self.names.get(name)?)
    }

    pub(crate) fn is_open(&self, name: &[u8]) -> bool {
        self.last_named(name).is_some()
    }

    /// Opens an element, first closing what its start tag closes. `closed` is told of every element
    /// closed. Unknown elements that neither hide nor set apart anything change nothing, so they are
    /// not kept.
    pub(crate) fn start(
        &mut self,
        name: &[u8],
        role: Role,
        unseen: Option<Unseen>,
        closed: &mut dyn FnMut(&Open),
    ) {
        self.close_implied(name, role, closed);
        let place = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        let fresh = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let id = match self.names.get(name) {
            Some(&id) => id,
            None if role == Role::Inline && unseen.is_none() && !is_preformatted(name) => return,
            None => {
                self.names.insert(name.to_vec(), fresh);
                self.places.push(Vec::new());
                fresh
            }
        };
        if let Some(places) = self.places.get_mut(id as usize) {
            places.push(place);
        }
        if role != Role::Inline {
            self.blocks.push(place);
        }
        if is_scope(name) {
            self.scopes.push(place);
        }
        let open = Open {
            name: id,
            role,
            shown: self.unseen == 0 && unseen.is_none(),
            unseen,
            preformatted: is_preformatted(name),
            gone: false,
        };
        self.count(&open, 1);
        self.open.push(open);
    }

    /// Closes what a start tag closes, for an element that is not opened itself.
    pub(crate) fn close_implied(&mut self, name: &[u8], role: Role, closed: &mut dyn FnMut(&Open)) {
        let table = self.last(known::TABLE);
        let scope = self.scopes.last().copied();
        match name {
            b"td" | b"th" => {
                self.close_above(known::TD, table, closed);
                self.close_above(known::TH, table, closed);
            }
            b"tr" => self.close_above(known::TR, table, closed),
            b"tbody" | b"thead" | b"tfoot" | b"caption" | b"colgroup" => {
                for section in [known::TBODY, known::THEAD, known::TFOOT, known::CAPTION] {
                    self.close_above(section, table, closed);
                }
            }
            b"option" | b"optgroup" => {
                self.close_above(known::OPTION, self.last(known::SELECT), closed);
            }
            b"li" => {
                let list = self.last(known::UL).max(self.last(known::OL)).max(scope);
                self.close_above(known::LI, list, closed);
            }
            b"dt" | b"dd" => {
                let list = self.last(known::DL).max(scope);
                self.close_above(known::DT, list, closed);
                self.close_above(known::DD, list, closed);
            }
            _ => {}
        }
        let is_block = !matches!(role, Role::Inline | Role::Row | Role::Cell)
            && !matches!(
                name,
                b"option" | b"optgroup" | b"select" | b"textarea" | b"noscript"
            );
        if is_block {
            let floor = self.scopes.last().copied().max(self.last(known::BUTTON));
            self.close_above(known::P, floor, closed);
        }
    }

    fn close_above(&mut self, number: u32, floor: Option<u32>, closed: &mut dyn FnMut(&Open)) {
        if let Some(place) = self.last(number)
            && Some(place) > floor
        {
            self.pop_to(place, closed);
        }
    }

    /// Handles an end tag; false if no such element is open.
    pub(crate) fn end(&mut self, name: &[u8], closed: &mut dyn FnMut(&Open)) -> bool {
        let Some(place) = self.last_named(name) else {
            return false;
        };
        let last_block = self.blocks.last().copied();
        let last_scope = self.scopes.last().copied();
        match role(name) {
            // What follows these end tags is shown as if they were not there.
            _ if matches!(name, b"html" | b"body") => {}
            Role::Inline if is_scope(name) => {
                if Some(place) >= last_scope {
                    self.pop_to(place, closed);
                }
            }
            Role::Inline => {
                if Some(place) > last_block {
                    self.pop_to(place, closed);
                } else if is_formatting(name) {
                    self.remove(place);
                }
            }
            Role::Table => self.pop_to(place, closed),
            Role::Cell | Role::Row => {
                if Some(place) > self.last(known::TABLE) {
                    self.pop_to(place, closed);
                }
            }
            Role::Line | Role::Paragraph => {
                let is_part = matches!(name, b"thead" | b"tbody" | b"tfoot" | b"caption");
                let floor = if is_part {
                    self.last(known::TABLE)
                } else {
                    last_scope
                };
                if Some(place) > floor {
                    self.pop_to(place, closed);
                }
            }
        }
        true
    }

    fn count(&mut self, open: &Open, by: i32) {
        let change = |count: &mut u32, applies: bool| {
            if applies {
                *count = count.saturating_add_signed(by);
            }
        };
        change(&mut self.unseen, open.unseen.is_some());
        change(&mut self.hidden, open.unseen == Some(Unseen::Hidden));
        change(&mut self.preformatted, open.preformatted);
    }

    /// Takes a formatting element out from between others.
    fn remove(&mut self, place: u32) {
        let Some(element) = self.open.get_mut(place as usize) else {
            return;
        };
        element.gone = true;
        let element = *element;
        self.count(&element, -1);
        if let Some(places) = self.places.get_mut(element.name as usize) {
            places.pop();
        }
    }

    fn pop_to(&mut self, place: u32, closed: &mut dyn FnMut(&Open)) {
        while self.open.len() > place as usize {
            let Some(element) = self.open.pop() else {
                return;
            };
            let at = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
            if !element.gone {
                self.count(&element, -1);
                if let Some(places) = self.places.get_mut(element.name as usize) {
                    places.pop();
                }
                closed(&element);
            }
            for list in [&mut self.blocks, &mut self.scopes] {
                if list.last() == Some(&at) {
                    list.pop();
                }
            }
        }
    }
}
