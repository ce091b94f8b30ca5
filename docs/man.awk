# Makes a manual page of a page in Markdown: headings, paragraphs, tables, `code`, **bold** and nothing else.
#
#	awk -v section=7 -f man.awk page.md >page.7
#
# The first heading is "name: what it is".

function escape(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

function inline(text) {
	text = escape(text)
	while (match(text, /`[^`]*`/)) {
		text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" substr(text, RSTART + RLENGTH)
	}
	while (match(text, /\*\*[^*]*\*\*/)) {
		text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 2, RLENGTH - 4) "\\fR" substr(text, RSTART + RLENGTH)
	}
	return text
}

# A line must not begin like a request.
function put(text) {
	if (text ~ /^[.']/) {
		text = "\\&" text
	}
	print text
}

function end_block() {
	if (kind == "table") {
		print ".TE"
	}
	kind = ""
}

# Each cell a block of text, so that it is filled to the width of its column.
function row(line,    cells, n, i, text) {
	sub(/^\| */, "", line)
	sub(/ *\|$/, "", line)
	n = split(line, cells, / *\| */)
	if (kind != "table") {
		kind = "table"
		print (fresh ? "" : ".PP\n") ".TS\nallbox;"
		fresh = 0
		for (i = 1; i <= n; i++) {
			text = text (i > 1 ? " " : "") "lb" widths[n]
		}
		print text
		gsub(/lb/, "l", text)
		print text "."
	}
	text = ""
	for (i = 1; i <= n; i++) {
		text = text (i > 1 ? "\t" : "") "T{\n" inline(cells[i]) "\nT}"
	}
	print text
}

BEGIN {
	widths[2] = "w(31n)"
	widths[3] = "w(20n)"
	print "'\\\" t"
}

/^# / {
	split(substr($0, 3), title, /: /)
	printf ".TH %s %s \"\" \"rationd\" \"rationd\"\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", toupper(escape(title[1])), section, escape(title[1]), escape(title[2])
	fresh = 1
	next
}

/^## / {
	end_block()
	print ".SH " toupper(escape(substr($0, 4)))
	fresh = 1
	next
}

/^\|[-|]*\|$/ {
	next
}

/^\|/ {
	row($0)
	next
}

/^$/ {
	end_block()
	next
}

{
	if (kind != "text") {
		if (!fresh) {
			print ".PP"
		}
		kind = "text"
		fresh = 0
	}
	put(inline($0))
}

END {
	end_block()
	print ".SH SEE ALSO"
	print ".BR rationd (8),\n.BR rationd.conf (5),\n.BR rationctl (1),\n.BR libration (3)"
}
