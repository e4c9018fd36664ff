// SPDX-License-Identifier: BSD-2-Clause
// The matrix of index.html. Everything comes from the JSON in #data; nothing is fetched.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const form = document.querySelector('.filters');
  const blocksHere = document.getElementById('blocks');
  const FILTERS = ['kernel', 'userland', 'provider', 'outcome', 'verdict', 'rule', 'text'];
  const ROW_PX = 43;  // place that a row of an undrawn block keeps, so that the page does not jump

  // --- data ------------------------------------------------------------------------------------

  function decode() {
    const cells = Array.from({length: data.count}, () => ({}));
    for (const [field, {values, at}] of Object.entries(data.columns)) {
      for (let i = 0; i < cells.length; i++) cells[i][field] = values[at[i]];
    }
    for (const cell of cells) {
      cell.outcome = cell.outcome ?? 'not run';
    }
    return cells;
  }

  const cells = decode();
  const byId = new Map(cells.map((cell) => [cell.id, cell]));

  function severity(cell) {
    return data.severity.verdict.indexOf(cell.verdict) * 100 +
        data.severity.outcome.indexOf(cell.outcome);
  }

  function haystack(cell) {
    cell.text ??=
        [
          cell.id, cell.outcome, data.words.verdict[cell.verdict], cell.route, ...(cell.lost ?? []),
          cell.rule, cell.errno, cell.by, cell.message, ...(cell.unmodelled ?? []), cell.signal,
          cell.expectation?.reason
        ].filter(Boolean)
            .join('\n')
            .toLowerCase();
    return cell.text;
  }

  function worst(list) {
    return list.reduce((a, b) => (severity(b) > severity(a) ? b : a));
  }

  // The cell without overlays speaks for its group, where it fits the filters; else the worst one.
  function headline(list) {
    return list.find((cell) => cell.variant === '') ?? worst(list);
  }

  // --- small DOM helpers -----------------------------------------------------------------------

  // Text only ever becomes a text node: messages of programs are never HTML.
  function h(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === false || value === undefined || value === null) continue;
      if (name.startsWith('on'))
        element.addEventListener(name.slice(2), value);
      else
        element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.flat(2).filter(
        (child) => child !== null && child !== undefined && child !== ''));
    return element;
  }

  const SVG = 'http://www.w3.org/2000/svg';
  function icon(name) {
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('class', 'icon');
    svg.setAttribute('aria-hidden', 'true');
    const use = document.createElementNS(SVG, 'use');
    use.setAttribute('href', '#i-' + name.replace(' ', '-'));
    svg.append(use);
    return svg;
  }

  function classOf(outcome) {
    return 'o-' + outcome.replace(' ', '-');
  }

  function chip(outcome) {
    return h('span', {class: 'chip ' + classOf(outcome)}, icon(outcome), outcome);
  }

  function verdictChip(verdict) {
    return h(
        'span', {class: 'verdict v-' + verdict, title: data.words.verdict_meaning[verdict]},
        data.words.verdict[verdict]);
  }

  function count(list, key) {
    const counts = new Map();
    for (const item of list) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
    return counts;
  }

  function plural(number, word) {
    return number.toLocaleString('en').replaceAll(',', '\u202f') + ' ' + word +
        (number === 1 ? '' : 's');
  }

  // --- address: #cell=ID&verdict=…, readable; a plus stays a plus, unlike in form encoding

  function readAddress() {
    const state = {};
    for (const part of location.hash.slice(1).split('&')) {
      const cut = part.indexOf('=');
      if (cut <= 0) continue;
      try {
        state[part.slice(0, cut)] = decodeURIComponent(part.slice(cut + 1));
      } catch {
        state[part.slice(0, cut)] = part.slice(cut + 1);
      }
    }
    return state;
  }

  function encode(text) {
    return text.replace(/[%&\s#"<>`]/g, encodeURIComponent);
  }

  function address() {
    const parts =
        FILTERS.filter((name) => filter[name]).map((name) => name + '=' + encode(filter[name]));
    if (opened) parts.unshift('cell=' + encode(opened.id));
    return '#' + parts.join('&');
  }

  function writeAddress() {
    const to = address();
    if (to === location.hash || (to === '#' && location.hash === '')) return;
    history.replaceState(null, '', to === '#' ? location.pathname + location.search : to);
  }

  // --- filters ---------------------------------------------------------------------------------

  let filter = {};
  let opened = null;  // the cell whose details are shown

  function fits(cell) {
    for (const name of FILTERS) {
      const wanted = filter[name];
      if (!wanted) continue;
      if (name === 'text') {
        for (const word of wanted.toLowerCase().split(/\s+/))
          if (!haystack(cell).includes(word)) return false;
      } else if (cell[name] !== wanted) {
        return false;
      }
    }
    return true;
  }

  function fillSelects() {
    const outcomes = ['full', 'degraded', 'refused', 'broken', 'unmodelled', 'absent', 'not run'];
    const orders = {
      kernel: data.order.kernels,
      userland: data.order.userlands,
      provider: data.order.providers,
      outcome: outcomes,
      verdict: ['expected', 'unexpected', 'fixed', 'not_run'],
    };
    for (const name of FILTERS) {
      if (name === 'text') continue;
      const counts = count(cells, (cell) => cell[name]);
      const values = orders[name] ?? [...counts.keys()].filter(Boolean).sort();
      form.elements[name].append(
          h('option', {value: ''}, 'all'),
          ...values.filter((value) => counts.has(value))
              .map(
                  (value) =>
                      h('option', {value},
                        (name === 'verdict' ? data.words.verdict[value] : value) + ' (' +
                            counts.get(value) + ')')));
    }
  }

  function readForm() {
    filter = {};
    for (const name of FILTERS) {
      const value = form.elements[name].value.trim();
      if (value) filter[name] = value;
    }
  }

  function showFilter() {
    for (const name of FILTERS) {
      const control = form.elements[name];
      // Not while somebody types: the space after a word must stay.
      if (control.value.trim() !== (filter[name] ?? '')) control.value = filter[name] ?? '';
      if (control.tagName === 'SELECT') {
        if (control.selectedIndex < 0)
          control.value = '';  // a link from another run: unknown value
        if (!control.value) delete filter[name];
        control.classList.toggle('on', control.value !== '');
      }
    }
  }

  // --- matrix ----------------------------------------------------------------------------------

  // Of the present filters: {provider, kernels, userlands, groups, element, drawn}.
  let blocks = [];

  function makeBlocks() {
    const shown = cells.filter(fits);
    const groups = new Map();
    for (const cell of shown) {
      const perProvider = groups.get(cell.provider) ?? new Map();
      groups.set(cell.provider, perProvider);
      const key = cell.kernel + '/' + cell.userland;
      if (perProvider.has(key))
        perProvider.get(key).push(cell);
      else
        perProvider.set(key, [cell]);
    }
    blocks = data.order.providers.filter((provider) => groups.has(provider)).map((provider) => {
      const perProvider = groups.get(provider);
      for (const list of perProvider.values()) {
        list.sort(
            (a, b) => (a.variant !== '') - (b.variant !== '') ||
                a.overlays.length - b.overlays.length ||
                a.variant.localeCompare(b.variant, 'en', {numeric: true}));
      }
      const all = [...perProvider.values()].flat();
      const kernels = new Set(all.map((cell) => cell.kernel));
      const userlands = new Set(all.map((cell) => cell.userland));
      return {
        provider,
        groups: perProvider,
        size: all.length,
        bad: all.filter((cell) => cell.verdict === 'unexpected').length,
        kernels: data.order.kernels.filter((kernel) => kernels.has(kernel)),
        userlands: data.order.userlands.filter((userland) => userlands.has(userland)),
        element: null,
        drawn: false,
      };
    });
    form.querySelector('.count').value = shown.length === cells.length ?
        plural(cells.length, 'cell') :
        shown.length.toLocaleString('en').replaceAll(',', '\u202f') + ' of ' +
            plural(cells.length, 'cell');
    document.getElementById('nothing').hidden = shown.length > 0 || cells.length === 0;
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) draw(entry.target.block);
  }, {rootMargin: '600px'});

  function show() {
    watcher.disconnect();
    makeBlocks();
    blocksHere.replaceChildren(...blocks.map((block) => {
      const title = data.titles.providers?.[block.provider];
      block.element =
          h('section', {
            class: 'block',
            'aria-label': 'provider ' + block.provider,
            style: `--wide:${170 + 230 * block.userlands.length}px`
          },
            h('h3', {}, block.provider,
              h('small', {}, [title, plural(block.size, 'cell')].filter(Boolean).join(' · ')),
              block.bad ? h('span', {class: 'verdict v-unexpected'}, block.bad + ' unexpected') :
                          null),
            h('div', {style: `height:${(block.kernels.length + 1) * ROW_PX}px`}));
      block.element.block = block;
      watcher.observe(block.element);
      return block.element;
    }));
    if (opened && !fits(opened)) opened = null;
    if (opened) open(opened, {scroll: false, focus: false});
  }

  function headerCell(scope, name, title) {
    return h('th', {scope}, name, title ? h('small', {title}, title) : null);
  }

  // What stands below a kernel's name: what it is, and how its answers are known.
  function kernelWords(block, kernel) {
    const list =
        block.userlands.map((userland) => block.groups.get(kernel + '/' + userland)).find(Boolean);
    const by = headline(list).known_by;
    const how = typeof by === 'object' ? by?.core ?? by?.driver : by;
    const share = how === 'calibrated' && data.agreement[kernel]?.replace(' ', '\u00a0');
    const known = !how       ? null :
        how === 'calibrated' ? (share ? `calibrated, ${share}` : 'calibrated') :
                                        'from ' + how;
    return [known, data.titles.kernels?.[kernel]].filter(Boolean).join(' · ');
  }

  function draw(block) {
    if (block.drawn) return;
    block.drawn = true;
    watcher.unobserve(block.element);
    const body = h('tbody');
    block.kernels.forEach((kernel, row) => {
      body.append(
          h('tr', {}, headerCell('row', kernel, kernelWords(block, kernel)),
            block.userlands.map(
                (userland, column) => h('td', {}, fieldOf(block, kernel, userland, row, column)))));
    });
    block.element.lastElementChild.replaceWith(
        h('table', {},
          h('colgroup', {}, h('col', {class: 'kernels'}), h('col', {span: block.userlands.length})),
          h('thead', {},
            h('tr', {}, h('th', {scope: 'col'}, 'kernel'),
              block.userlands.map(
                  (userland) => headerCell('col', userland, data.titles.userlands?.[userland])))),
          body));
  }

  function outcomeCounts(list) {
    const counts = count(list, (cell) => cell.outcome);
    return [...data.severity.outcome, 'not run']
        .filter((outcome) => counts.has(outcome))
        .map((outcome) => [outcome, counts.get(outcome)]);
  }

  function fieldOf(block, kernel, userland, row, column) {
    const list = block.groups.get(kernel + '/' + userland);
    if (!list) return h('div', {class: 'empty', title: 'not in this selection'}, '·');
    const head = headline(list);
    const bad = list.filter((cell) => cell.verdict === 'unexpected').length;
    const fixed = list.filter((cell) => cell.verdict === 'fixed').length;
    const counts = outcomeCounts(list);
    const words =
        (head.variant && list.length === 1 ? [head.variant] : []).concat(head.why || []).join(': ');
    const say = counts.map(([outcome, number]) => number + ' ' + outcome).join(', ');
    return h(
        'button', {
          type: 'button',
          class: ['field', classOf(head.outcome), bad ? 'unexpected' : ''].join(' ').trim(),
          'aria-expanded': 'false',
          'data-group': head.id,
          'data-row': row,
          'data-column': column,
          tabindex: row + column ? -1 : 0,
          'aria-label': `${userland} on ${kernel}, ${block.provider}: ${head.outcome}${
                            words ? ', ' + words : ''}; ` +
              `${plural(list.length, 'cell')}: ${say}${bad ? '; ' + bad + ' unexpected' : ''}`,
          title: (words ? words + '\n' : '') + plural(list.length, 'cell') + ': ' + say,
        },
        h('span', {class: 'name'}, icon(head.outcome), head.outcome),
        words ? h('span', {class: 'more'}, words) : null,
        h('span', {class: 'side'},
          bad       ? h('span', {class: 'bad'}, icon('alert'), String(bad),
                        h('span', {class: 'field-word'}, 'unexpected')) :
              fixed ? h('span', {class: 'good'}, fixed + ' fixed') :
                      null,
          list.length > 1 ?
              h('span', {class: 'bar'}, counts.map(([outcome, number]) => h('i', {
                                                     class: outcome.replace(' ', '-'),
                                                     style: `width:${100 * number / list.length}%`
                                                   }))) :
              null,
          list.length > 1 ? h('span', {class: 'all'}, list.length + ' cells') : null));
  }

  // --- details of a cell -----------------------------------------------------------------------

  function buttonOf(cell) {
    const block = blocks.find((one) => one.provider === cell.provider);
    if (!block) return null;
    draw(block);
    const row = block.kernels.indexOf(cell.kernel);
    const column = block.userlands.indexOf(cell.userland);
    return block.element.querySelector(`.field[data-row="${row}"][data-column="${column}"]`);
  }

  function close() {
    const before = document.querySelector('.field[aria-expanded="true"]');
    before?.setAttribute('aria-expanded', 'false');
    document.querySelector('tr.open')?.remove();
    opened = null;
    return before;
  }

  function open(cell, {scroll, focus}) {
    close();
    const button = buttonOf(cell);
    if (!button) return;
    const block = button.closest('.block').block;
    const list = block.groups.get(cell.kernel + '/' + cell.userland);
    opened = cell;
    button.setAttribute('aria-expanded', 'true');
    moveTabStop(button);
    const variants = list.length < 2 ?
        null :
        h('div', {class: 'variants', role: 'group', 'aria-label': 'cells of this field'},
          h('p', {}, `${cell.userland} on ${cell.kernel}: ` + plural(list.length, 'cell')),
          list.map(
              (one) =>
                  h('button', {
                    type: 'button',
                    'data-cell': one.id,
                    'aria-current': one === cell ? 'true' : 'false'
                  },
                    h('span', {class: 'ico ' + classOf(one.outcome)}, icon(one.outcome)),
                    h('span', {}, one.variant || 'plain', ' ', h('small', {}, one.outcome)),
                    one.verdict === 'expected' ? null : verdictChip(one.verdict))));
    const row =
        h('tr', {class: 'open'},
          h('td', {colspan: block.userlands.length + 1},
            h('div', {class: 'detail' + (variants ? '' : ' alone')}, variants, cellView(cell))));
    button.closest('tr').after(row);
    const current = row.querySelector('.variants [aria-current="true"]');
    if (current)
      current.parentElement.scrollTop = current.offsetTop - current.parentElement.offsetTop - 80;
    if (scroll) button.scrollIntoView({block: 'start'});
    if (focus) (current ?? row.querySelector('.copy-exec')).focus({preventScroll: true});
  }

  function term(name, ...content) {
    return content.flat().some((part) => part !== null && part !== undefined && part !== '') ?
        [h('dt', {}, name), h('dd', {}, content)] :
        [];
  }

  function known(cell) {
    if (!cell.known_by) return null;
    const parts = typeof cell.known_by === 'string' ? {'': cell.known_by} : cell.known_by;
    const share = data.agreement[cell.kernel];
    return Object.entries(parts).map(
        ([part, how]) => h(
            'div', {}, part ? part + ': ' : '', h('b', {}, how), ' (', data.words.known[how],
            how === 'calibrated' && part !== 'driver' && share ? `; ${share} of all answers agree` :
                                                                 '',
            ')'));
  }

  function tests(cell) {
    const list = (cell.tests ?? []).map((at) => data.tests[at]);
    if (!list.length) return null;
    const order = {failed: 0, skipped: 1, passed: 2};
    const counts = count(list, (test) => test[1]);
    const say = ['failed', 'passed', 'skipped']
                    .filter((result) => counts.has(result))
                    .map((result) => counts.get(result) + ' ' + result);
    return h(
        'details', {class: 'test-list', open: counts.has('failed') || list.length <= 12},
        h('summary', {}, plural(list.length, 'test') + ': ' + say.join(', ')),
        h('ul', {class: 'tests'},
          [...list]
              .sort((a, b) => order[a[1]] - order[b[1]])
              .map(
                  ([name, result, message]) =>
                      h('li', {class: result}, h('b', {}, result), name,
                        message ? h('pre', {}, message) : null))));
  }

  function cellView(cell) {
    const reason = cell.expectation && [
      cell.expectation.outcome ? `expected ${cell.expectation.outcome}: ` : '',
      cell.expectation.reason,
      cell.expectation.link ?
          [' ', h('a', {href: cell.expectation.link, rel: 'noreferrer'}, cell.expectation.link)] :
          null
    ].flat();
    const refusal = [
      cell.errno ? h('b', {}, cell.errno) : null, cell.by ? ` from ${cell.by}` : null,
      cell.rule ?
          [
            cell.errno || cell.by ? ', rule ' : 'rule ', h('code', {}, cell.rule),
            data.titles.rules?.[cell.rule] ? ` (${data.titles.rules[cell.rule]})` : ''
          ] :
          null
    ].flat();
    const machine = [
      cell.arch, cell.page_size && cell.page_size !== 4096 ? `${cell.page_size} byte pages` : null
    ].filter(Boolean);
    return h(
        'div', {class: 'cell'},
        h('h4', {}, chip(cell.outcome), verdictChip(cell.verdict),
          h('span', {class: 'note'}, data.words.outcome[cell.outcome]),
          h('button', {type: 'button', class: 'close', title: 'Esc', onclick: () => leave()},
            'Close')),
        h('p', {class: 'id'},
          h('a', {href: '#cell=' + encode(cell.id), title: 'Link to this cell'}, cell.id)),
        h('div', {class: 'exec'},
          h('pre', {class: 'exec-line', title: 'The command that reproduces this cell'}, cell.exec),
          copyButton(cell.exec)),
        h('dl', {},
          term('Lost', (cell.lost ?? []).map((feature) => h('span', {class: 'tag'}, feature))),
          term('Route', cell.route),
          term(cell.outcome === 'refused' ? 'Refused with' : 'Answer', refusal),
          term('Message', cell.message ? h('pre', {}, cell.message) : null),
          term(
              'Not modelled',
              (cell.unmodelled ?? []).map((name) => h('span', {class: 'tag'}, name))),
          term('Ended by', cell.signal, cell.limit ? `${cell.limit} limit` : null),
          term(
              'Exit status',
              Number.isInteger(cell.exit_status) && cell.exit_status !== 0 ?
                  String(cell.exit_status) :
                  null),
          term('Known by', known(cell)), term('Expectation', reason || null),
          term(
              'Devices',
              (cell.devices ?? [])
                  .map(
                      (one) =>
                          h('span', {class: 'tag'},
                            `${one.name} (${[one.driver, one.link].filter(Boolean).join(', ')})`))),
          term('Used', (cell.features ?? []).map((feature) => h('span', {class: 'tag'}, feature))),
          term('Machine', machine.join(', ')),
          term('Trace', cell.trace_digest ? h('code', {}, cell.trace_digest.slice(0, 19)) : null),
          term(
              'Took',
              Number.isFinite(cell.duration_ms) ? `${Math.round(cell.duration_ms)} ms` : null)),
        steps(cell), tests(cell));
  }

  function steps(cell) {
    if (!cell.steps?.length) return null;
    return h(
        'details', {open: true}, h('summary', {}, 'Step by step'),
        h('table', {class: 'steps'},
          cell.steps.map(
              (step) =>
                  h('tr', {}, h('td', {}, step.stage),
                    h('td', {}, step.text, step.effect ? ' → ' + step.effect : ''), h('td', {}, [
                      step.by, step.rule ? 'rule ' + step.rule : null, step.errno
                    ].filter(Boolean).join(', '))))));
  }

  function copyButton(text) {
    const button =
        h('button', {
          type: 'button',
          class: 'copy-exec',
          'aria-live': 'polite',
          onclick: async () => {
            button.textContent = await copy(text) ? 'Copied' : 'Select and copy';
            setTimeout(() => {
              button.textContent = 'Copy';
            }, 2000);
          }
        },
          'Copy');
    return button;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {  // an old browser, or a page that may not use the clipboard
      const area = h('textarea', {style: 'position:fixed;opacity:0'});
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand('copy');
      area.remove();
      return done;
    }
  }

  // --- keys and clicks -------------------------------------------------------------------------

  function moveTabStop(button) {
    for (const other of button.closest('.block').querySelectorAll('.field[tabindex="0"]'))
      other.tabIndex = -1;
    button.tabIndex = 0;
  }

  function leave() {
    const button = close();
    writeAddress();
    button?.focus();
  }

  function step(button, rows, columns) {
    const block = button.closest('.block').block;
    let row = Number(button.dataset.row);
    let column = Number(button.dataset.column);
    for (;;) {  // over fields that hold no cell
      row += rows;
      column += columns;
      if (row < 0 || column < 0 || row >= block.kernels.length || column >= block.userlands.length)
        return;
      const next =
          block.element.querySelector(`.field[data-row="${row}"][data-column="${column}"]`);
      if (next) {
        moveTabStop(next);
        next.focus();
        return;
      }
    }
  }

  blocksHere.addEventListener('click', (event) => {
    const variant = event.target.closest('[data-cell]');
    if (variant) {
      open(byId.get(variant.dataset.cell), {scroll: false, focus: true});
      writeAddress();
      return;
    }
    const field = event.target.closest('.field');
    if (!field) return;
    if (field.getAttribute('aria-expanded') === 'true') {
      leave();
      return;
    }
    const top = field.getBoundingClientRect().top;
    open(byId.get(field.dataset.group), {scroll: false, focus: false});
    window.scrollBy({
      top: field.getBoundingClientRect().top - top,
      behavior: 'instant'
    });  // stay under the pointer
    writeAddress();
  });

  blocksHere.addEventListener('keydown', (event) => {
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
    const variant = event.target.closest('[data-cell]');
    if (variant && move[0]) {
      const next = move[0] > 0 ? variant.nextElementSibling : variant.previousElementSibling;
      if (next?.dataset.cell) {
        open(byId.get(next.dataset.cell), {scroll: false, focus: true});
        writeAddress();
      }
      event.preventDefault();
    } else if (event.target.classList.contains('field')) {
      step(event.target, ...move);
      event.preventDefault();
    }
  });

  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && opened) {
      leave();
    } else if (event.key === '/' && !event.target.closest('input, select, textarea')) {
      event.preventDefault();
      form.elements.text.focus();
    }
  });

  function filterChanged() {
    readForm();
    showFilter();
    show();
    writeAddress();
  }

  let typing = 0;
  form.addEventListener('input', (event) => {
    clearTimeout(typing);
    typing = setTimeout(filterChanged, event.target.name === 'text' ? 120 : 0);
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('reset', () => setTimeout(filterChanged, 0));

  document.addEventListener('click', (event) => {
    if (event.target.closest('[data-reset]')) form.reset();
    const tile = event.target.closest('[data-filter]');
    if (!tile) return;
    const [name, value] = tile.dataset.filter.split('=');
    filter = filter[name] === value ? {} : {[name]: value};
    showFilter();
    show();
    writeAddress();
    document.getElementById('matrix').scrollIntoView();
  });

  function fromAddress() {
    const state = readAddress();
    const cell = byId.get(state.cell);
    const names = FILTERS.filter((name) => state[name]);
    if (!cell && !names.length) return;  // a link to a section
    filter = Object.fromEntries(names.map((name) => [name, state[name]]));
    if (cell && !fits(cell)) filter = {};
    showFilter();
    opened = null;
    show();
    if (cell)
      open(cell, {scroll: true, focus: true});
    else
      document.getElementById('matrix').scrollIntoView();
  }

  window.addEventListener('hashchange', fromAddress);
  window.addEventListener('beforeprint', () => blocks.forEach(draw));

  fillSelects();
  show();
  fromAddress();
})();
