# Makes a manual page of a page in Markdown: headings, paragraphs, tables, indented code, `code`, **bold** and nothing else.
#
#	awk -v name=rationd-page -v section=7 -f man.awk page.md >page.7
#
# The first heading is what it is about, with "NAME: " before it or not.

function escape(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

# Code has no blanks to break lines at. A star is none of **bold**.
function breakable(code) {
	gsub(/[,\/{|]/, "&\\:", code)
	gsub(/\*/, "\002", code)
	return code
}

function inline(text) {
	text = escape(text)
	while (match(text, /`[^`]*`/)) {
		text = substr(text, 1, RSTART - 1) "\\fB" breakable(substr(text, RSTART + 1, RLENGTH - 2)) "\\fR" substr(text, RSTART + RLENGTH)
	}
	while (match(text, /\*\*[^*]*\*\*/)) {
		text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 2, RLENGTH - 4) "\\fR" substr(text, RSTART + RLENGTH)
	}
	gsub(/\002/, "*", text)
	return text
}

# A line must not begin like a request.
function guard(text) {
	return text ~ /^[.']/ ? "\\&" text : text
}

# Between paragraphs; the first one of a section stands without.
function apart() {
	if (!fresh) {
		print ".PP"
	}
	fresh = 0
}

function end_block() {
	if (kind == "table") {
		print ".TE\n.sp"
	}
	if (kind == "code") {
		print ".EE\n.RE"
	}
	kind = ""
}

# Each cell a block of text, so that it is filled to the width of its column.
function row(line,    cells, n, i, text) {
	sub(/^\| */, "", line)
	sub(/ *\|$/, "", line)
	# A bar that is meant is written \\|.
	gsub(/\\\|/, "\001", line)
	n = split(line, cells, / *\| */)
	if (kind != "table") {
		kind = "table"
		print (fresh ? "" : ".PP\n") ".TS\nallbox;"
		fresh = 0
		for (i = 1; i <= n; i++) {
			text = text (i > 1 ? " " : "") "lb" widths[n]
		}
		if (line ~ /^[ |]*$/) {
			gsub(/lb/, "l", text)
			print text "."
			return
		}
		print text
		gsub(/lb/, "l", text)
		print text "."
	}
	text = ""
	for (i = 1; i <= n; i++) {
		gsub(/\001/, "|", cells[i])
		text = text (i > 1 ? "\t" : "") "T{\n.nh\n" guard(inline(cells[i])) "\nT}"
	}
	print text
}

BEGIN {
	widths[2] = "w(31n)"
	widths[3] = "w(20n)"
	print "'\\\" t"
}

/^# / {
	title = substr($0, 3)
	sub(name ": ", "", title)
	printf ".TH %s %s \"\" \"rationd\" \"rationd\"\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", toupper(escape(name)), section, escape(name), escape(title)
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

/^    / {
	if (kind != "code") {
		apart()
		kind = "code"
		print ".RS 4\n.EX"
	}
	print guard(escape(substr($0, 5)))
	next
}

/^$/ {
	end_block()
	next
}

{
	if (kind != "text") {
		apart()
		kind = "text"
	}
	print guard(inline($0))
}

END {
	end_block()
	print ".SH SEE ALSO"
	print ".BR rationd (8),\n.BR rationd.conf (5),\n.BR rationctl (1),\n.BR libration (3)"
}
